package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/internal/node/command"
)

// leave prints the answer of a Job as one line of JSON, and leaves it as the container's termination message. The error is what the work
// has failed with; the answer says it as well.
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

// answered is an error that the answer has told.
type answered struct{ error }

// ExitCode is 1; nothing is to take the place of the answer.
func (answered) ExitCode() (code int, said bool) { return 1, true }
