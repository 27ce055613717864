package recovery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/recovery"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/places"
)

// crate is a disk that is not mounted. A store is written to it by one program per file, which reads the file on the node.
type crate struct {
	root string
	// disk holds the files on it, and serves the files that its server reports.
	disk, serves map[string]string
	// taken names the user of the disk.
	taken string
}

func newCrate(t *testing.T) *crate {
	t.Helper()
	c := &crate{root: t.TempDir(), disk: map[string]string{}}
	NewWithT(t).Expect(os.MkdirAll(filepath.Join(c.root, "run"), 0o700)).To(Succeed())
	return c
}

func (c *crate) prove(_ context.Context, t spec.Target) (string, error) {
	if c.taken != "" {
		return "", errors.New("sdb is in use (" + c.taken + ")")
	}
	return "/dev/" + t.Served.DeviceID, nil
}

func (c *crate) run(_ context.Context, argv []string) (format.Answer, error) {
	switch argv[0] {
	case "list":
		return format.Answer{Stdout: strings.Join(backend.SortedKeys(c.disk), "\n")}, nil
	case "clear":
		clear(c.disk)
		return format.Answer{}, nil
	case "write":
		content, err := os.ReadFile(filepath.Join(c.root, argv[2]))
		c.disk[argv[1]] = string(content)
		return format.Answer{}, errors.Join(err, os.Remove(filepath.Join(c.root, argv[2])))
	case "serves":
		if content, there := c.serves[argv[1]]; there {
			return format.Answer{Stdout: content}, nil
		}
	}
	return format.Answer{Code: 2, Said: "there is none"}, nil
}

func (*crate) StoreStrangers(run backend.RunOnNode, device string) ([]string, error) {
	output, err := run("list", device)
	return strings.Fields(string(output)), err
}

func (*crate) PutBackStore(run backend.RunOnNode, place func(string, []byte) error, device, work string, files map[string][]byte) error {
	if _, err := run("clear", device); err != nil {
		return err
	}
	for _, name := range backend.SortedKeys(files) {
		if err := place(work+"-file", files[name]); err != nil {
			return err
		}
		if _, err := run("write", name, work+"-file"); err != nil {
			return err
		}
	}
	return nil
}

func (*crate) CompareStore(run backend.RunOnNode, files map[string][]byte) error {
	for _, name := range backend.SortedKeys(files) {
		output, err := run("serves", name)
		if err != nil {
			return err
		}
		if !bytes.Equal(output, files[name]) {
			return fmt.Errorf("%s is another one", name)
		}
	}
	return nil
}

// toCrate restores a backup of a shelf to a disk.
func toCrate(t *testing.T, o recovery.Options, c *crate, backup string) recovery.Options {
	t.Helper()
	o.Disk = &recovery.Disk{Store: c, Prove: c.prove, Run: c.run, Root: c.root}
	o.Config.Restore = &spec.Restore{
		Plan: "0123abcd", Backup: backup, Component: "service", User: "root", Ledger: o.Prover.Ledger,
		Target: &spec.Target{Name: "crate-n1", UUID: "aaaa-1111", Served: &spec.ServedTarget{DeviceID: "sdb"}},
	}
	return o
}

func TestAStoreIsWrittenToAnUnmountedDiskWhicheverStepItIsKilledBefore(t *testing.T) {
	g, place := NewWithT(t), t.TempDir()
	const name = "20261122-030000"
	shelved(t, place, name, files("targets/1", "quota/1"))
	killed := errors.New("killed")
	wanted := map[string]string{"name": "hive", "targets/1": "targets/1", "quota/1": "quota/1"}
	// through restores with a kill before the nth step, then once more, and returns the number of steps.
	through := func(n int) (steps int) {
		c := newCrate(t)
		o := toCrate(t, ofShelf(t, place), c, name)
		before := func(string) error {
			if steps++; steps == n {
				return killed
			}
			return nil
		}
		o.Before, o.Prover.Writer.Before = before, before
		answer, err := recovery.Run(t.Context(), o)
		if n > 0 {
			g.Expect(err).To(MatchError(killed))
			g.Expect(answer.Restored).To(BeFalse())
			o.Before, o.Prover.Writer.Before = nil, nil
			answer, err = recovery.Run(t.Context(), o)
		}
		o.Before, o.Prover.Writer.Before = nil, nil
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer).To(Equal(spec.RecoveryAnswer{Restored: true, Found: []spec.RecoveryFound{{Backup: name}}}))
		g.Expect(c.disk).To(Equal(wanted))
		c.disk["later"] = "written by the server since"
		answer, err = recovery.Run(t.Context(), o)
		g.Expect(err).NotTo(HaveOccurred(), "doing it again does no harm")
		g.Expect(answer.Restored).To(BeTrue())
		g.Expect(c.disk).To(HaveKey("later"), "what was finished is not written again")
		delete(c.disk, "later")
		g.Expect(c.disk).To(Equal(wanted))
		return steps
	}
	steps := through(0)
	g.Expect(steps).To(BeNumerically(">", 10))
	for _, n := range places.Kills.Of(t, steps) {
		through(n + 1)
	}
}

func TestARestoreOfAnotherPlanIsReplacedUnlessItIsComplete(t *testing.T) {
	g, place := NewWithT(t), t.TempDir()
	shelved(t, place, "20261121-030000", files("old"))
	shelved(t, place, "20261122-030000", files("new"))
	c := newCrate(t)
	o := toCrate(t, ofShelf(t, place), c, "20261121-030000")
	o.Before = func(step string) error {
		if strings.HasPrefix(step, "run write old") {
			return errors.New("killed")
		}
		return nil
	}
	_, err := recovery.Run(t.Context(), o)
	g.Expect(err).To(HaveOccurred())
	g.Expect(c.disk).NotTo(BeEmpty())
	o.Before, o.Config.Restore.Plan, o.Config.Restore.Backup = nil, "89abcdef", "20261122-030000"
	_, err = recovery.Run(t.Context(), o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.disk).To(Equal(map[string]string{"name": "hive", "new": "new"}))

	o.Config.Restore.Plan, o.Config.Restore.Backup = "00112233", "20261121-030000"
	answer, err := recovery.Run(t.Context(), o)
	g.Expect(err).To(MatchError(ContainSubstring("the disk of crate-n1 has a store already (name, new), and nothing is restored over what is there")))
	g.Expect(answer.Restored).To(BeFalse())
	g.Expect(c.disk).To(HaveKey("new"))
}

func TestAStoreIsNotWrittenOnADiskWhen(t *testing.T) {
	const name = "20261122-030000"
	for why, c := range map[string]struct {
		change func(o *recovery.Options, c *crate)
		says   string
	}{
		"it is in use": {func(_ *recovery.Options, c *crate) { c.taken = "mounted at /mnt" }, "the disk of crate-n1 can't be used: sdb is in use (mounted at /mnt)"},
		"something is on it": {func(_ *recovery.Options, c *crate) { c.disk["name"] = "another" },
			"the disk of crate-n1 has a store already (name)"},
		"an attempt was on another disk": {func(o *recovery.Options, c *crate) {
			c.disk["name"] = "another"
			_ = os.WriteFile(o.Config.Restore.Ledger, []byte(`{"version":1,"uuid":"bbbb-2222","plan":"0123abcd"}`), 0o600)
		}, "has a store already"},
		"a newer operator was there": {func(o *recovery.Options, _ *crate) {
			_ = os.WriteFile(o.Config.Restore.Ledger, []byte(`{"version":2,"uuid":"aaaa-1111"}`), 0o600)
		}, "has version 2 of its form"},
		"nobody can read what was done": {func(o *recovery.Options, _ *crate) {
			_ = os.WriteFile(o.Config.Restore.Ledger, []byte("{"), 0o600)
		}, "can't understand"},
		"the backup is another one by now": {func(o *recovery.Options, _ *crate) { o.Config.Restore.Has = "4 logs with 12 records" },
			"the plan says 4 logs with 12 records: the backup is another one by now; ask for a new plan"},
		"it is not told which":    {func(o *recovery.Options, _ *crate) { o.Config.Restore.Target.Served = nil }, "it is not told which disk"},
		"there is no such backup": {func(o *recovery.Options, _ *crate) { o.Config.Restore.Backup = "20261129-030000" }, "can't read what the backup 20261129-030000 says"},
	} {
		t.Run(why, func(t *testing.T) {
			g, place, crate := NewWithT(t), t.TempDir(), newCrate(t)
			shelved(t, place, name, files("targets/1"))
			o := toCrate(t, ofShelf(t, place), crate, name)
			c.change(&o, crate)
			before := maps.Clone(crate.disk)
			answer, err := recovery.Run(t.Context(), o)
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			g.Expect(answer.Restored).To(BeFalse())
			g.Expect(crate.disk).To(Equal(before))
		})
	}
}

func TestAServerIsComparedWithTheBackupThatWasPutBack(t *testing.T) {
	g, place, c := NewWithT(t), t.TempDir(), newCrate(t)
	const name = "20261122-030000"
	shelved(t, place, name, files("targets/1"))
	o := toCrate(t, ofShelf(t, place), c, name)
	o.Config.Restore, o.Config.Compare = nil, &spec.Compare{Backup: name}
	c.serves = map[string]string{"name": "hive", "targets/1": "targets/1"}
	g.Expect(recovery.Run(t.Context(), o)).To(Equal(spec.RecoveryAnswer{Compared: true, Found: []spec.RecoveryFound{}}))
	c.serves["name"] = "other"
	answer, err := recovery.Run(t.Context(), o)
	g.Expect(err).To(HaveOccurred())
	g.Expect(answer).To(And(HaveField("Compared", false), HaveField("Message", "name is another one")))
	delete(c.serves, "name")
	answer, _ = recovery.Run(t.Context(), o)
	g.Expect(answer.Message).To(Equal("serves name ended with exit code 2: there is none"))
	o.Disk = nil
	answer, _ = recovery.Run(t.Context(), o)
	g.Expect(answer.Message).To(ContainSubstring("compares nothing"))
}
