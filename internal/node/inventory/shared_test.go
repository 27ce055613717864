package inventory

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestANodeWithoutASharedMountOfItsStateIsReported(t *testing.T) {
	const (
		root                = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
		private             = "22 1 8:1 / / rw,relatime - ext4 /dev/root rw\n"
		second              = "23 22 8:9 / / rw,relatime - ext4 /dev/other rw\n"
		itself              = "22 22 8:1 / / rw,relatime - ext4 /dev/root rw\n"
		variable            = "30 22 8:2 / /var rw shared:2 master:7 - xfs /dev/var rw\n"
		slave               = "31 22 8:2 / /var rw master:2 - xfs /dev/var rw\n"
		over                = "32 30 8:2 / /var rw master:2 - xfs /dev/var rw\n"
		shared              = "33 31 8:2 / /var rw shared:5 - xfs /dev/var rw\n"
		own                 = "40 31 8:3 / /var/lib/parallelfs rw,noatime shared:9 - ext4 /dev/state rw\n"
		covered             = "41 22 8:3 / /var/lib/parallelfs rw,noatime shared:9 - ext4 /dev/state rw\n"
		below               = "50 30 8:4 / /var/lib/parallelfs/targets/a rw - xfs /dev/a rw\n"
		elsewhere, namesake = "51 22 0:6 / /run rw - tmpfs tmpfs rw\n", "52 30 8:5 / /var/lib/parallelfs-e2e rw - xfs /dev/b rw\n"
		unbindable          = "31 22 8:2 / /var rw unbindable - xfs /dev/var rw\n"
	)
	for name, c := range map[string]struct{ table, at string }{
		"the root is shared":                                      {root + elsewhere, ""},
		"the root is private":                                     {private + elsewhere, "/"},
		"the root is its own parent":                              {itself, "/"},
		"a private root is over a shared one":                     {root + second, "/"},
		"/var is shared, and the root is not":                     {private + variable, ""},
		"/var only receives mounts":                               {root + slave, "/var"},
		"/var can't be bound":                                     {root + unbindable, "/var"},
		"the directory is a shared mount itself":                  {private + slave + own, ""},
		"a private mount below it, as one of a disk is":           {root + variable + below, ""},
		"a private mount of a longer name":                        {root + variable + namesake, ""},
		"a private mount over a shared one":                       {root + variable + over, "/var"},
		"a shared mount over a private one":                       {root + slave + shared, ""},
		"a shared mount of the directory, which /var covers":      {root + covered + slave, "/var"},
		"a table that names the upper mount before the lower one": {root + over + variable, "/var"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			n := newNode(t)
			n.file("proc/1/mountinfo", c.table)
			status := n.collector.Collect(t.Context())
			g.Expect(status.UnsharedState).To(Equal(c.at))
			if c.at == "" {
				g.Expect(status.Problems).To(Equal([]string{"something of the disks"}))
				return
			}
			g.Expect(strings.Join(status.Problems, "\n")).To(And(
				ContainSubstring("/var/lib/parallelfs is on "+c.at+", which is not a shared mount"), ContainSubstring("mount --make-rshared "+c.at)))
		})
	}
	for name, table := range map[string]string{"no table": "this is no table\n", "a table without a root": elsewhere} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			n := newNode(t)
			n.file("proc/1/mountinfo", table)
			status := n.collector.Collect(t.Context())
			g.Expect(status.UnsharedState).To(BeEmpty())
			g.Expect(strings.Join(status.Problems, "\n")).To(ContainSubstring("can't find out whether /var/lib/parallelfs is on a shared mount"))
		})
	}
}
