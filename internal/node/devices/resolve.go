package devices

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// valid is the format of a DeviceID (api, DeviceID). Other names are refused.
var valid = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:+=@-]{3,127}$`)

// byContent lists prefixes of links that identify the content of a disk and not the disk: such a link moves with a copy.
var byContent = []string{"lvm-pv-uuid-"}

func namesContent(link string) bool {
	return slices.ContainsFunc(byContent, func(prefix string) bool { return strings.HasPrefix(link, prefix) })
}

// readLinks reads /dev/disk/by-id and the claims in udev's database.
func (v *view) readLinks() {
	directory := filepath.Join(v.Dev, "disk/by-id")
	claim := func(link, name string) {
		if !slices.Contains(v.claims[link], name) {
			v.claims[link] = append(v.claims[link], name)
		}
	}
	for _, link := range entries(directory) {
		name := v.follow(filepath.Join(directory, link))
		if name == "" {
			continue // It dangles because the disk was pulled.
		}
		claim(link, name)
		if valid.MatchString(link) && !namesContent(link) {
			v.links[name] = append(v.links[name], link)
		}
	}
	// If several devices claim a link, it leads to one of them, and after the next boot possibly to another. The database has the links of
	// each device as lines "S:disk/by-id/…", in a file named after the device number.
	for _, name := range v.allDevices() {
		file, err := os.Open(filepath.Join(v.Udev, "data", "b"+v.number(name)))
		if err != nil {
			continue // This node has no udev, or udev has not processed the device yet.
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			if link, ok := strings.CutPrefix(lines.Text(), "S:disk/by-id/"); ok && len(v.claims[link]) > 0 {
				claim(link, name)
			}
		}
		_ = file.Close() // it was only read
	}
	v.readSharedWWNs()
	for name, links := range v.links {
		wwn := v.anyWWN(firstOf(v.parent(name), name))
		v.links[name] = slices.DeleteFunc(links, func(link string) bool {
			return len(v.withoutPaths(v.claims[link])) > 1 || v.shared[wwn] != nil && plan.IsLinkOfWWN(link, wwn)
		})
		slices.SortFunc(v.links[name], telling)
	}
}

// readSharedWWNs finds WWNs that several disks with different serial numbers share. Some enclosures give one WWN to all of their disks
// (github.com/lxc/incus-os/issues/1145), and a batch of disks may have one EUI.
func (v *view) readSharedWWNs() {
	having := map[string][]string{}
	for _, name := range v.whole {
		if wwn := v.wwn(name); wwn != "" && v.listed[name].Type != "mpath" {
			having[wwn] = append(having[wwn], name)
		}
	}
	v.shared = map[string][]string{}
	for wwn, names := range having {
		if isPlaceholder(wwn) {
			v.shared[wwn] = names
		}
		for i, name := range names {
			if slices.ContainsFunc(names[:i], func(other string) bool { return v.serialsDiffer(name, other) }) {
				v.shared[wwn] = names
			}
		}
	}
}

// placeholder matches WWNs and EUIs that name no disk: all zeros, all ones, or one digit and zeros, such as 0x5000000000000000.
var placeholder = regexp.MustCompile(`^(0x|eui\.|uuid\.)([0-]+|[f-]+|[0-9a-f]0+)$`)

// isPlaceholder reports whether a WWN names no disk, even if only one disk of the node has it: disks of other nodes may have it, too.
func isPlaceholder(wwn string) bool { return placeholder.MatchString(wwn) }

// serialsDiffer is true if both disks have a serial number from the same source and the numbers differ. Udev and the kernel may format the
// serial number of one disk differently.
func (v *view) serialsDiffer(a, b string) bool {
	if ka, kb := v.kernelSerial(a), v.kernelSerial(b); ka != "" && kb != "" {
		return ka != kb
	}
	la, lb := v.listed[a].Serial, v.listed[b].Serial
	return la != "" && lb != "" && la != lb
}

// sharers returns the reason why a disk's WWN is not used: the other disks with the same WWN and another serial number, or a placeholder.
// It is empty if the WWN is used.
func (v *view) sharers(disk string) string {
	wwn := v.anyWWN(disk)
	if isPlaceholder(wwn) {
		return fmt.Sprintf("its WWN %s is a placeholder, which any disk may have, so it is not used as a name", wwn)
	}
	path := v.Lowest(disk)[0]
	others := slices.DeleteFunc(slices.Clone(v.shared[wwn]), func(name string) bool { return !v.serialsDiffer(name, path) })
	switch len(others) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("its WWN %s is that of %s too, which has another serial number, so it is not used as a name", wwn, others[0])
	}
	return fmt.Sprintf("its WWN %s is that of %s too, which have other serial numbers, so it is not used as a name", wwn, few(others))
}

// few returns at most three names and the number of the remaining ones.
func few(names []string) string {
	const shown = 3
	if more := len(names) - shown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), more)
	}
	return strings.Join(names, ", ")
}

// allDevices returns the kernel names of all devices and partitions.
func (v *view) allDevices() []string {
	all := slices.Clone(v.whole)
	for _, name := range v.whole {
		all = append(all, v.partitions(name)...)
	}
	return all
}

// follow returns the kernel name of the device that a link leads to, or nothing.
func (v *view) follow(link string) string {
	target, err := os.Readlink(link)
	if err != nil {
		return ""
	}
	if name := filepath.Base(target); v.number(name) != "" {
		return name
	}
	if target, err = filepath.EvalSymlinks(link); err == nil && v.number(filepath.Base(target)) != "" {
		return filepath.Base(target)
	}
	return ""
}

// telling sorts ids. Globally unique ids from the disk's maker come first.
func telling(a, b string) int {
	rank := func(id string) int {
		order := []string{"wwn-", "nvme-eui.", "nvme-uuid."}
		for i, prefix := range order {
			if strings.HasPrefix(id, prefix) {
				return i
			}
		}
		return len(order)
	}
	if ra, rb := rank(a), rank(b); ra != rb {
		return ra - rb
	}
	return strings.Compare(a, b)
}

var partitionSuffix = regexp.MustCompile(`-part[0-9]+$`)

// resolve returns the kernel name of the one device with the id, or nothing if there is none.
func (v *view) resolve(id string) (string, error) {
	if !valid.MatchString(id) {
		return "", fmt.Errorf("%q can't be the name of a device; use the name of its link in /dev/disk/by-id", id)
	}
	if namesContent(id) {
		return "", fmt.Errorf("%s names what is on a disk, and not the disk; use another link in /dev/disk/by-id", id)
	}
	found := v.claims[id]
	how := "the link /dev/disk/by-id/" + id
	if len(found) == 1 {
		if err := v.agrees(id, found[0]); err != nil {
			return "", err
		}
		if twins := v.twins(found[0]); len(twins) > 0 {
			found, how = append(slices.Clone(found), twins...), how+" or what else names "+v.describe(found[0])
		}
	}
	wanted := canonical(id)
	for wwn := range v.shared {
		if plan.IsLinkOfWWN(id, wwn) {
			found, wanted = nil, wwn
		}
	}
	if len(found) == 0 && wanted != "" {
		if how += " or the WWN " + wanted; len(v.claims[id]) == 0 {
			how = "the WWN " + wanted
		}
		found = v.having(func(name string) bool { return v.anyWWN(name) == wanted })
	}
	if len(found) == 0 {
		how = "the serial number " + id
		found = v.having(func(name string) bool { return v.identity(name, name).Serial == id || v.listed[name].Serial == id })
	}
	linked := v.claims[id]
	found = v.withoutPaths(found)
	switch {
	case len(found) == 0:
		return "", nil
	case len(found) == 1 && len(linked) > 0 && (v.parent(linked[0]) == "") != (v.parent(found[0]) == ""):
		return "", fmt.Errorf("the link /dev/disk/by-id/%s leads to %s, which is only one path to %s; run: multipath -r, and kpartx -u %s",
			id, v.describe(linked[0]), v.describe(found[0]), v.node(found[0]))
	case len(found) == 1:
		return found[0], nil
	}
	descriptions := make([]string, len(found))
	for i, name := range found {
		descriptions[i] = v.describe(name)
	}
	err := fmt.Errorf("%d devices have %s: %s; it is unknown which is meant, so none is touched. Use an id that only one of them has",
		len(found), how, strings.Join(descriptions, " and "))
	if v.shared[wanted] != nil {
		return "", &sharedError{err}
	}
	return "", err
}

// sharedError is the error for an id with a WWN that several disks with different serial numbers share.
type sharedError struct{ error }

// recorded returns the devices that match everything recorded except the name, and those that claim to be the same disk.
func (v *view) recorded(want v1alpha1.DeviceIdentity) []string {
	if want.Serial == "" && want.WWN == "" || want.Serial == "" && v.shared[want.WWN] != nil {
		return nil
	}
	found := v.having(func(name string) bool {
		is := v.identity(name, name)
		// A WWN that was shared when the disk was chosen is not on record.
		return is.Serial == want.Serial && (v.anyWWN(name) == want.WWN || is.WWN == want.WWN) && is.SizeBytes == want.SizeBytes
	})
	for _, name := range slices.Clone(found) {
		found = append(found, v.twins(name)...)
	}
	found = v.withoutPaths(found)
	slices.Sort(found)
	return slices.Compact(found)
}

// describe names a device so that a person can find it.
func (v *view) describe(name string) string {
	disk := firstOf(v.parent(name), name)
	is := v.identity(disk, disk)
	is.WWN = firstOf(is.WWN, is.SharedWWN)
	var more []string
	for _, item := range [][2]string{{"model", is.Model}, {"serial", is.Serial}, {"WWN", is.WWN}} {
		if item[1] != "" {
			more = append(more, item[0]+" "+item[1])
		}
	}
	if ids := v.links[name]; len(ids) > 0 {
		more = append(more, "link "+ids[0])
	}
	if len(more) == 0 {
		return name
	}
	return name + " (" + strings.Join(more, ", ") + ")"
}

// agrees refuses a link whose WWN differs from the device's, because udev has not noticed yet that the disk was exchanged.
func (v *view) agrees(id, name string) error {
	says := canonical(partitionSuffix.ReplaceAllString(id, ""))
	disk := firstOf(v.parent(name), name)
	is := v.anyWWN(disk)
	// A disk may have both a WWN and an EUI, of which the kernel shows only one.
	if says == "" || is == "" || says == is || says[:2] != is[:2] {
		return nil
	}
	return fmt.Errorf("the link /dev/disk/by-id/%s leads to %s, which has the WWN %s: udev is behind the kernel; run: udevadm trigger --settle %s",
		id, name, is, v.node(name))
}

// anyWWN returns the WWN of a disk, even if other disks share it.
func (v *view) anyWWN(disk string) string {
	is := v.identity(disk, disk)
	return firstOf(is.WWN, is.SharedWWN)
}

// twins returns the other disks that claim to be the same disk: with the same WWN and no different serial number, or with the same serial
// number if no WWN distinguishes them.
func (v *view) twins(name string) []string {
	disk := firstOf(v.parent(name), name)
	me := v.identity(disk, disk)
	return v.having(func(other string) bool {
		if other == disk {
			return false
		}
		it := v.identity(other, other)
		if mine, its := v.anyWWN(disk), v.anyWWN(other); mine != "" && its != "" && !isPlaceholder(mine) && !isPlaceholder(its) {
			return mine == its && !v.serialsDiffer(disk, other)
		}
		// All namespaces of one NVMe controller have its serial number.
		return me.Serial != "" && me.Serial == it.Serial && v.attribute(disk, "nsid") == v.attribute(other, "nsid")
	})
}

// having returns the whole devices that match.
func (v *view) having(holds func(name string) bool) []string {
	var found []string
	for _, name := range v.whole {
		if holds(name) {
			found = append(found, name)
		}
	}
	return found
}

// withoutPaths removes the paths of a multipath device in the list, because both are the same disk.
func (v *view) withoutPaths(names []string) []string {
	var paths []string
	for _, name := range names {
		if whole := firstOf(v.parent(name), name); v.listed[whole].Type == "mpath" {
			paths = append(paths, v.Lowest(whole)...)
		}
	}
	left := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(paths, firstOf(v.parent(name), name)) })
	return slices.Compact(left)
}
