package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/internal/node/command"
)

// leave prints the answer of a Job as one line of JSON, and writes it as the container's termination message. The error is the one with
// which the work failed; the answer contains it as well.
func leave(c *cobra.Command, answer any, failed error) error {
	line, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	if _, err := fmt.Fprintln(c.OutOrStdout(), string(line)); err != nil {
		return err
	}
	command.LeaveMessage(string(line))
	if failed != nil {
		logger().Error(failed.Error())
		return answered{failed}
	}
	return nil
}

// answered is an error that the answer contains.
type answered struct{ error }

// ExitCode is 1; no other message may replace the answer.
func (answered) ExitCode() (code int, said bool) { return 1, true }
