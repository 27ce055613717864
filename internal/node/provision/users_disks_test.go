//go:build disks

package provision_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/disktest"
	"parallelfs.dev/operator/internal/node/provision"
	"parallelfs.dev/operator/test/patience"
)

func TestUsersAreFoundBesideAFilesystemThatDoesNotAnswer(t *testing.T) {
	disktest.Unanswering(t)
	const noDevice = 4095
	found := make(chan []string, 1)
	go func() { found <- provision.Users("/proc", noDevice, 0) }()
	NewWithT(t).Eventually(found).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeEmpty()))
}
