// Package devices reads the disks of a node. It opens devices only for reading: a scan changes no byte and triggers no udev event. Package
// plan evaluates the results.
package devices

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/plan"
)

// Looker reads the disks of a node. Programs use ThisHost; the fields exist for tests.
type Looker struct {
	// Dev, Sys and Proc are the mount points of the node's devtmpfs, sysfs and procfs. Proc shows the processes of the whole node, not those
	// of a container. Udev is udev's directory, which may be empty.
	Dev, Sys, Proc, Udev string
	// Kubelet is the kubelet's directory, which may be empty.
	Kubelet string
	// Run runs a program of util-linux.
	Run Runner
	// Claim opens a device exclusively for a moment, see ClaimDevice.
	Claim func(path, number string) (busy string, err error)
	// Sample looks for data on a device, see ReadSample.
	Sample func(path string) (unknown string, err error)
	// Elsewhere names another node that has a device mounted, see ReadElsewhere.
	Elsewhere func(path string, f format.Guarded) (who string, err error)
	// Limit bounds the time of one program, or of one attempt to open a device. A disk that does not answer is reported as such.
	Limit time.Duration
}

// ThisHost reads the disks of the node that the program runs on. In a container it needs the node's /dev, /run/udev and process ids, and
// root.
func ThisHost() Looker {
	return Looker{
		Dev: "/dev", Sys: "/sys", Proc: "/proc", Udev: "/run/udev", Kubelet: filepath.Join(host.Root, "var/lib/kubelet"),
		Run: Execute, Claim: ClaimDevice, Sample: ReadSample, Elsewhere: ReadElsewhere, Limit: 30 * time.Second,
	}
}

// All returns every whole block device of the node by kernel name: disks, and devices built on them by multipath, LVM, md, dm-crypt or a
// loop device. Devices that hold nothing (RAM disks, zram, empty loop devices, drives without a medium) and optical ones are left out.
// problems lists what could not be read about the node as a whole. Errors about one device are in its Facts.
func (l Looker) All(ctx context.Context) (found []plan.Facts, problems []string) {
	v, err := l.survey(ctx)
	if err != nil {
		return nil, []string{err.Error()}
	}
	for _, name := range v.whole {
		f := v.look(ctx, name)
		if f.Found {
			f.Unusable = sentencesOf(f)
			found = append(found, f)
		}
	}
	if len(found) > maxDevices {
		problems = append(problems, fmt.Sprintf("the node has %d block devices; only the first %d are listed", len(found), maxDevices))
		found = found[:maxDevices]
	}
	return found, append(problems, v.problems...)
}

// ByID reads the one device with this id: the one that its link in /dev/disk/by-id leads to, or else the one with this WWN, or else the one
// with this serial number. A partition is found only by its link, and Facts.PartitionOf is set. If no device has the id, Facts.Found is
// false. It is an error if two devices have the id, or if a link contains another WWN than the kernel reports, because then the disk is
// ambiguous.
func (l Looker) ByID(ctx context.Context, id v1alpha1.DeviceID) (plan.Facts, error) {
	return l.Recorded(ctx, v1alpha1.DeviceIdentity{ID: id})
}

// Recorded is ByID for a recorded disk. If no device has the id, or if the id contains a WWN that several disks share, it returns the one
// device with the recorded serial number, WWN and size (Facts.Renamed). Links in /dev/disk/by-id come and go with versions of udev and of
// drivers.
func (l Looker) Recorded(ctx context.Context, want v1alpha1.DeviceIdentity) (plan.Facts, error) {
	id := want.ID
	v, err := l.survey(ctx)
	if err != nil {
		return plan.Facts{}, err
	}
	name, err := v.resolve(string(id))
	renamed := ""
	var several *sharedError
	if name == "" && (err == nil || errors.As(err, &several)) {
		if same := v.recorded(want); len(same) == 1 {
			name, err, renamed = same[0], nil, cmp.Or(err, fmt.Errorf("no device has the name %s", id)).Error()
		}
	}
	if err != nil || name == "" {
		return plan.Facts{}, err
	}
	f := v.look(ctx, name)
	if !f.Found {
		return f, nil
	}
	if renamed != "" {
		f.Renamed = fmt.Sprintf("%s has the serial number, WWN and size that were recorded, and another name: %s", name, renamed)
	}
	f.LogOf = v.logOf(ctx, f)
	if f.Busy == "" {
		f.Busy = v.writers(slices.Concat([]string{name, f.PartitionOf}, f.Partitions))
	}
	// The device was found by the id, so the id is one of its names even without a link.
	if !slices.Contains(f.IDs, string(id)) {
		f.IDs = append(slices.Clone(f.IDs[:min(len(f.IDs), maxIDs-1)]), string(id))
	}
	later := v.later()
	now, err := later.resolve(string(id))
	if same := later.recorded(want); renamed != "" && now == "" && len(same) == 1 {
		now, err = same[0], nil
	}
	switch {
	case err != nil:
		return plan.Facts{}, err
	case now == "":
		f.Incomplete = sentence(f.Incomplete, fmt.Sprintf("%s had the id %s before the look, and no device has it now", name, id))
	case now != name:
		f.Incomplete = sentence(f.Incomplete, fmt.Sprintf("%s had the id %s before the look, and %s has it now", name, id, now))
	}
	f.Unusable = sentencesOf(f)
	return f, nil
}

// Holding reads the one device with a filesystem of this UUID that is not smaller than size. If there is none, Facts.Found is false. It is
// an error if there are two, because one of them is a copy.
func (l Looker) Holding(ctx context.Context, uuid string, size int64) (plan.Facts, error) {
	v, err := l.survey(ctx)
	if err != nil {
		return plan.Facts{}, err
	}
	var found []string
	for _, name := range v.whole {
		if now, err := v.size(name); err != nil || now < size {
			continue
		}
		probed, err := v.blkid(ctx, name)
		if err != nil {
			continue // Its own scan reports this.
		}
		if slices.ContainsFunc(probed, func(s v1alpha1.Signature) bool { return s.UUID == uuid }) {
			found = append(found, name)
		}
	}
	found = v.withoutPaths(found)
	switch len(found) {
	case 0:
		return plan.Facts{}, nil
	case 1:
		f := v.look(ctx, found[0])
		if f.Found {
			f.LogOf = v.logOf(ctx, f)
			f.Unusable = sentencesOf(f)
		}
		return f, nil
	}
	return plan.Facts{}, fmt.Errorf("several devices hold the UUID %s: %s; all but one are copies: take those away", uuid, few(found))
}

// sentencesOf returns the reasons why the device can't become a target, within the limits of the API.
func sentencesOf(f plan.Facts) []string {
	all := plan.Unusable(f)
	all = all[:min(len(all), 32)]
	for i := range all {
		all[i] = text(all[i], 512)
	}
	return all
}

// view holds one scan's observations of the whole node. Each scan makes a new view and never keeps it.
type view struct {
	Looker
	// whole holds the kernel names of the whole devices.
	whole []string
	// listed holds the output of lsblk(8) by kernel name.
	listed map[string]listed
	// links holds the names in /dev/disk/by-id, by kernel name. claims holds the kernel names by name of link: several if several devices
	// claim the link in udev's database.
	links, claims map[string][]string
	// shared maps a WWN to the disks that have it although their serial numbers differ. Such a WWN does not identify a disk.
	shared map[string][]string
	// uses lists the uses of each device, by kernel name.
	uses map[string][]string
	// remote holds the IDs of mounts whose filesystem may not answer.
	remote map[int]bool
	// loops lists the loop devices on top of each device, by its kernel name.
	loops map[string][]string
	// problems lists what could not be read about the node. If it is not empty, no device of the node counts as free.
	problems []string
}

// survey reads everything that concerns all devices.
func (l Looker) survey(ctx context.Context) (*view, error) {
	v := &view{Looker: l, uses: map[string][]string{}, claims: map[string][]string{}, links: map[string][]string{}}
	var err error
	if v.listed, err = l.list(ctx); err != nil {
		return nil, err
	}
	if v.whole, err = v.wholeDevices(); err != nil {
		return nil, err
	}
	if len(v.listed) == 0 && len(v.whole) > 0 {
		v.problem("lsblk lists no device, and the kernel has %d; so it is unknown what they are", len(v.whole))
	}
	v.readLinks()
	v.readMounts()
	v.readBlockVolumes()
	v.readSwaps()
	v.readMountedFilesystems()
	v.readLoops()
	return v, nil
}

// later returns a view of the devices' current names.
func (v *view) later() *view {
	now := &view{Looker: v.Looker, listed: v.listed, claims: map[string][]string{}, links: map[string][]string{}}
	if whole, err := now.wholeDevices(); err == nil {
		now.whole = whole
		now.readLinks()
	}
	return now
}

func (v *view) problem(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// look reads one device.
func (v *view) look(ctx context.Context, name string) plan.Facts {
	var f plan.Facts
	number := v.number(name)
	if number == "" {
		return f // It was removed after it was listed.
	}
	before := v.sequence(name)
	disk := name
	if parent := v.parent(name); parent != "" {
		f.PartitionOf, disk = parent, parent
	}
	f.BlockDevice = v.identity(name, disk)
	size, unknown := v.size(name)
	if unknown == nil && size == 0 {
		return plan.Facts{} // A drive without a medium, or a loop device without a file.
	}
	f.Found = true
	f.TwoDisks = v.twoDisks(disk)
	f.Remarks = sentences(v.sharers(disk))

	parts := v.partitions(name)
	f.Partitions = parts
	all := append([]string{name}, parts...)
	if f.PartitionOf != "" {
		all = append(all, disk) // A user of the whole disk also uses the partition.
	}
	var missing []string
	if unknown != nil {
		missing = append(missing, unknown.Error())
	}
	for _, part := range all {
		f.Holders = append(f.Holders, v.holders(part)...)
		f.Mounts = append(f.Mounts, v.uses[part]...)
		signatures, err := v.signatures(ctx, part)
		if part == disk && f.PartitionOf != "" {
			signatures = slices.DeleteFunc(signatures, isPartitionTable)
		}
		f.Signatures = append(f.Signatures, signatures...)
		if err != nil {
			missing = append(missing, err.Error())
		}
		who, err := v.elsewhere(ctx, part, signatures)
		if err != nil {
			missing = append(missing, err.Error())
		}
		f.Elsewhere = firstOf(f.Elsewhere, who)
	}
	f.Holders = unique(f.Holders)
	f.Mounts = unique(f.Mounts)

	busy, err := ask(ctx, v.Looker, name, "an open of it", func(context.Context) (string, error) { return v.Claim(v.node(name), number) })
	if err != nil {
		missing = append(missing, err.Error())
	}
	f.Busy = busy
	if len(f.Signatures) == 0 && len(f.Partitions) == 0 {
		f.Unknown, err = ask(ctx, v.Looker, name, "a read of it", func(context.Context) (string, error) { return v.Sample(v.node(name)) })
		if err != nil {
			missing = append(missing, err.Error())
		}
		if f.Unknown != "" {
			f.Signatures = v.withoutTable(ctx, name, f.SizeBytes)
		}
	}
	if v.sequence(name) != before || v.number(name) != number {
		missing = append(missing, fmt.Sprintf("%s was exchanged for another device during the look", name))
	}
	f.Incomplete = sentence(append(missing, v.problems...)...)
	limit(&f)
	return f
}

// node returns the path of the device node.
func (l Looker) node(name string) string {
	return filepath.Join(l.Dev, strings.ReplaceAll(name, "!", "/"))
}

// sentence joins the parts that are not empty.
func sentence(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// sentences returns the texts that are not empty, or nil if there is none.
func sentences(all ...string) []string {
	if all = slices.DeleteFunc(all, func(s string) bool { return s == "" }); len(all) == 0 {
		return nil
	}
	return all
}

// unique sorts and removes duplicates.
func unique(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

// The limits of the API (BlockDevice).
const (
	maxDevices    = 1024
	maxPartitions = 256
	maxItems      = 64
	maxIDs        = 32
)

// limit keeps the facts within the limits of the API. The remaining entries suffice to show that the device is in use.
func limit(f *plan.Facts) {
	f.Model, f.Serial, f.WWN = text(f.Model, 128), text(f.Serial, 128), text(f.WWN, 128)
	f.SharedWWN = text(f.SharedWWN, 128)
	f.IDs = f.IDs[:min(len(f.IDs), maxIDs)]
	for i := range f.Remarks {
		f.Remarks[i] = text(f.Remarks[i], 512)
	}
	f.Partitions = f.Partitions[:min(len(f.Partitions), maxPartitions)]
	f.Holders = f.Holders[:min(len(f.Holders), maxItems)]
	f.Mounts = f.Mounts[:min(len(f.Mounts), maxItems)]
	for i := range f.Mounts {
		f.Mounts[i] = text(f.Mounts[i], 512)
	}
	if more := len(f.Signatures) - maxItems; more > 0 {
		rest := v1alpha1.Signature{Device: f.KernelName, Type: fmt.Sprintf("%d more signatures", more+1)}
		f.Signatures = append(f.Signatures[:maxItems-1], rest)
	}
}

// text returns s as valid UTF-8, cut to at most the given number of bytes.
func text(s string, most int) string {
	s = strings.TrimSpace(strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}, s), "?"))
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// within stops waiting for f after the limit, because a call to a disk that does not answer can't be interrupted.
func within[T any](ctx context.Context, limit time.Duration, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := f()
		done <- result{value, err}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var none T
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	case <-timer.C:
		return none, errors.New("no answer within " + limit.String() + "; look for errors of the disk in the kernel's log (dmesg)")
	}
}

// naturally compares kernel names so that sdaa follows sdz, and loop10 follows loop9.
func naturally(a, b string) int {
	stem := strings.TrimRight(a, "0123456789")
	if stem == strings.TrimRight(b, "0123456789") || stem == "" {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	}
	return cmp.Compare(a, b)
}
