package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

func TestADiskThatMayBeAVolumeOfKubernetesIsNotSelected(t *testing.T) {
	volume := func(names ...string) []plan.Attachment {
		return []plan.Attachment{{Volume: "pvc-1", Driver: "csi.example.com", Names: names}}
	}
	by := func(transport string, change ...func(b *v1alpha1.BlockDevice)) func(b *v1alpha1.BlockDevice) {
		return func(b *v1alpha1.BlockDevice) {
			b.Transport = transport
			for _, c := range change {
				c(b)
			}
		}
	}
	serial := func(serial string) func(b *v1alpha1.BlockDevice) {
		return func(b *v1alpha1.BlockDevice) { b.Serial = serial }
	}
	wwn := func(wwn string) func(b *v1alpha1.BlockDevice) {
		return func(b *v1alpha1.BlockDevice) { b.WWN = wwn }
	}
	const is, maybe = "it is volume pvc-1, which csi.example.com has attached to the node", "it may be volume pvc-1"
	for name, c := range map[string]struct {
		disk     func(b *v1alpha1.BlockDevice)
		attached []plan.Attachment
		says     string
	}{
		"nothing is attached":                              {by("iscsi"), nil, ""},
		"a volume without a word about its disk":           {by("iscsi"), volume(), maybe},
		"a volume that names no disk of the node":          {by("nvme-tcp"), volume("handle-of-nothing", "/dev/xvdba"), maybe},
		"a local disk beside it":                           {by("nvme"), volume("handle-of-nothing"), ""},
		"a disk whose transport is unknown":                {by(""), volume(), maybe},
		"a disk whose serial number is the handle":         {by("nvme", serial("vol0abc1234def567890")), volume("vol-0abc1234def567890"), is},
		"a serial number that is the start of the handle":  {by("virtio", serial("3c9e1d60-5a9a-4d1c-b")), volume("3c9e1d60-5a9a-4d1c-b1c2-d3e4f5a6b7c8"), is},
		"a WWN that the driver says":                       {by("sas", wwn("0x6000c29f1a2b3c4d5e6f708192a3b4c5")), volume("6000c29f1a2b3c4d5e6f708192a3b4c5"), is},
		"a WWN of another notation":                        {by("fc", wwn("naa.6000c29f1a2b3c4d")), volume("6000C29F-1A2B-3C4D"), is},
		"a WWN with the prefix of hexadecimal numbers":     {by("fc", wwn("0x6000c29f1a2b3c4d")), volume("0x6000C29F1A2B3C4D"), is},
		"a WWN with the word naa, in capitals":             {by("iscsi", wwn("0x6000c29f1a2b3c4d")), volume("NAA.6000C29F1A2B3C4D"), is},
		"a WWN behind the digit of its type":               {by("iscsi", wwn("0x6000c29f1a2b3c4d5e6f708192a3b4c5")), volume("36000c29f1a2b3c4d5e6f708192a3b4c5"), is},
		"the map of multipath, by its identification":      {by("fc", wwn("0x6000c29f1a2b3c4d5e6f708192a3b4c5")), volume("/dev/disk/by-id/dm-uuid-mpath-36000c29f1a2b3c4d5e6f708192a3b4c5"), is},
		"an EUI of NVMe over TCP, in capitals":             {by("nvme-tcp", wwn("eui.0025385b71b0e1f2")), volume("EUI.0025385B71B0E1F2"), is},
		"an EUI in the path of a link":                     {by("nvme-tcp", wwn("eui.0025385b71b0e1f2")), volume("/dev/disk/by-id/nvme-eui.0025385b71b0e1f2"), is},
		"an EUI of 128 bits without its word":              {by("nvme-tcp", wwn("eui.36344630526001720025384500000007")), volume("36344630526001720025384500000007"), is},
		"a UUID of NVMe with other dashes":                 {by("nvme-tcp", wwn("uuid.6ba7b810-9dad-11d1-80b4-00c04fd430c8")), volume("6BA7B8109DAD11D180B400C04FD430C8"), is},
		"the path of an iSCSI session":                     {by("iscsi"), volume("/dev/disk/by-path/ip-10.0.0.5:3260-iscsi-iqn.2024-01.com.example:t1-lun-0"), maybe},
		"a link whose name is the end of the handle":       {by("iscsi", func(b *v1alpha1.BlockDevice) { b.IDs = append(b.IDs, "google-pvc-11112222") }), volume("projects/p/zones/z/disks/pvc-11112222"), is},
		"a short serial number that is in many names":      {by("nvme", serial("1")), volume("vol-0000000000000001"), ""},
		"a volume that is another disk of the node":        {by("iscsi"), volume("oss1-0001-serial"), ""},
		"one that is another disk, and one that may be it": {by("iscsi"), append(volume("oss1-0001-serial"), plan.Attachment{Volume: "pvc-2", Driver: "d"}), "it may be volume pvc-2"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := anInput(aFileSystem("scratch", selecting(1, func(s *v1alpha1.DeviceSelector) {
				s.ExcludeIDGlobs = []v1alpha1.Glob{"wwn-oss1-0001"}
			})), 2, "oss1")
			change(in, "oss1", 0, c.disk)
			change(in, "oss1", 1, serial("OSS1-0001-SERIAL"))
			if transport := in.Inventories["oss1"].BlockDevices[0].Transport; transport != "" {
				in.FileSystem.Spec.StoragePools[0].Targets.Select.Transports = []v1alpha1.Transport{v1alpha1.Transport(transport)}
			}
			in.Attachments = map[string][]plan.Attachment{"oss1": c.attached, "oss2": volume()}
			s := plan.Select(in)
			if c.says == "" {
				g.Expect(ids(s.Targets)).To(Equal([]string{"oss1:wwn-oss1-0000"}), "%v", messages(s.Problems))
				return
			}
			g.Expect(s.Targets).To(BeEmpty())
			g.Expect(messages(s.Problems)).To(ConsistOf(ContainSubstring(c.says)))

			in.Existing = []v1alpha1.StorageTarget{}
			in.FileSystem = aFileSystem("scratch", naming(v1alpha1.DeviceReference{Node: "oss1", ID: "wwn-oss1-0000"}))
			named := plan.Select(in)
			if c.says != is {
				g.Expect(ids(named.Targets)).To(Equal([]string{"oss1:wwn-oss1-0000"}), "a person names the disk")
				return
			}
			g.Expect(named.Targets).To(BeEmpty(), "a person named the disk of a volume")
			g.Expect(messages(named.Problems)).To(ConsistOf(And(ContainSubstring("NoDevices"), ContainSubstring(is))))
		})
	}
}

func TestADiskOfATargetStaysChosenWhateverIsAttached(t *testing.T) {
	g := NewWithT(t)
	in := anInput(aFileSystem("scratch", selecting(1, func(s *v1alpha1.DeviceSelector) { s.Transports = []v1alpha1.Transport{"iscsi"} })), 1, "oss1")
	change(in, "oss1", 0, func(b *v1alpha1.BlockDevice) { b.Transport = "iscsi" })
	in.Existing = plan.Select(in).Targets
	in.Attachments = map[string][]plan.Attachment{"oss1": {{Volume: "pvc-1", Driver: "d"}}}
	s := plan.Select(in)
	g.Expect(ids(s.Targets)).To(Equal([]string{"oss1:wwn-oss1-0000"}))
	g.Expect(s.Problems).To(BeEmpty())
}
