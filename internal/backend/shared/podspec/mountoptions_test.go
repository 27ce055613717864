package podspec_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

func TestAClientObeysNoSetuidProgramAndNoDeviceFileOfAFilesystemUnlessTheSpecAsksForIt(t *testing.T) {
	for name, c := range map[string]struct {
		asked  []v1alpha1.MountOption
		wanted []string
	}{
		"no option":        {nil, []string{"nodev", "nosuid"}},
		"another one":      {[]v1alpha1.MountOption{"flock"}, []string{"flock", "nodev", "nosuid"}},
		"suid":             {[]v1alpha1.MountOption{"suid"}, []string{"nodev", "suid"}},
		"suid and dev":     {[]v1alpha1.MountOption{"suid", "dev"}, []string{"dev", "suid"}},
		"the same already": {[]v1alpha1.MountOption{"nosuid", "noatime"}, []string{"noatime", "nodev", "nosuid"}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(podspec.ClientMountOptions(&v1alpha1.ClientsSpec{MountOptions: c.asked})).To(Equal(c.wanted))
		})
	}
	NewWithT(t).Expect(podspec.ClientMountOptions(nil)).To(Equal([]string{"nodev", "nosuid"}))
}
