// Command pass carries out one pass of the agent over one StorageTarget, in the virtual machine of the tests, which has no API server: it
// reads the object from its standard input and writes a Result.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/uuid"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/devices"
	"parallelfs.dev/operator/internal/node/provision"
)

// Result is the result of the pass.
type Result struct {
	// Target is the object as it would be in the API server now.
	Target *v1alpha1.StorageTarget `json:"target"`
	// Recorded has all statuses that were written, in their order.
	Recorded []v1alpha1.StorageTargetStatus `json:"recorded"`
	// Error of the pass, empty for none.
	Error string `json:"error"`
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "pass:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var result Result
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&result.Target); err != nil {
		return fmt.Errorf("can't understand the StorageTarget: %w", err)
	}
	provisioner := provision.New(devices.ThisHost(), func() string { return string(uuid.NewUUID()) })
	record := func(_ context.Context, target *v1alpha1.StorageTarget, wanted v1alpha1.StorageTargetStatus) error {
		target.Status = wanted
		result.Recorded = append(result.Recorded, wanted)
		return nil
	}
	if err := provisioner.Pass(ctx, result.Target, record); err != nil {
		result.Error = err.Error()
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}
