//go:build disks

package provision_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/provision"
	"parallelfs.dev/operator/test/patience"
	"parallelfs.dev/operator/test/unanswering"
)

func TestUsersAreFoundBesideAFilesystemThatDoesNotAnswer(t *testing.T) {
	unanswering.Open(t)
	const noDevice = 4095
	found := make(chan []string, 1)
	go func() { found <- provision.Users("/proc", noDevice, 0) }()
	NewWithT(t).Eventually(found).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeEmpty()))
}
