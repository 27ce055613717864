package cli

import (
	"fmt"
	"slices"
	"strconv"
)

// Commands has the command lines for one filesystem. None of them needs a shell, and the comment of each lists its requirements.
type Commands struct {
	FSName string
}

// pool is the name of a pool for lctl.
func (c Commands) pool(name string) string { return c.FSName + "." + name }

// ClientStates asks a client for the history of its connections to all targets.
func (c Commands) ClientStates() []string {
	return []string{"lctl", "get_param", "mdc." + c.FSName + "-*.state", "osc." + c.FSName + "-*.state"}
}

// Eviction matches an entry of such a history: a server has evicted the client.
const Eviction = `(?m)^ - \[ \d+, EVICTED \]$`

// Pools lists the pools, and Pool the OSTs of one; a client or the MGS answers.
func (c Commands) Pools() []string { return []string{"lctl", "pool_list", c.FSName} }

// Pool lists the OSTs of a pool.
func (c Commands) Pool(name string) []string { return []string{"lctl", "pool_list", c.pool(name)} }

// AddPool makes a pool without OSTs. It runs on the node of the MGS, like all commands that change pools; if MDT0000 is on another node,
// the filesystem must be mounted there as well (lctl-pool_add(8)). Each takes about 10 s, and this one ends with 17 when the pool exists.
func (c Commands) AddPool(name string) []string { return []string{"lctl", "pool_new", c.pool(name)} }

// AddToPool adds OSTs to a pool.
func (c Commands) AddToPool(name string, osts []int32) []string {
	return append([]string{"lctl", "pool_add", c.pool(name)}, c.ranges(osts)...)
}

// RemoveFromPool removes OSTs from a pool. Files stay where they are.
func (c Commands) RemoveFromPool(name string, osts []int32) []string {
	return append([]string{"lctl", "pool_remove", c.pool(name)}, c.ranges(osts)...)
}

// ranges formats the names of OSTs, with one item for consecutive ones: pfs-OST[0000-0017/1] (lctl-pool_add(8)).
func (c Commands) ranges(osts []int32) []string {
	var out []string
	osts = slices.Sorted(slices.Values(osts))
	for i := 0; i < len(osts); {
		j := i
		for j+1 < len(osts) && osts[j+1] == osts[j]+1 {
			j++
		}
		if i == j {
			out = append(out, Target{c.FSName, OST, osts[i]}.String())
		} else {
			out = append(out, fmt.Sprintf("%s-OST[%04x-%04x/1]", c.FSName, osts[i], osts[j]))
		}
		i = j + 1
	}
	return out
}

// Component is a part of a layout. End is 0 for a component up to the end of the file.
type Component struct {
	End int64
	// OSTs is the number of OSTs over which it is striped; AllOSTs for all of the pool.
	OSTs int32
	// StripeSize is 0 for Lustre's own default.
	StripeSize int64
	// OnMDT keeps it on the MDT of the file.
	OnMDT bool
}

// AllOSTs stripes a component over all OSTs of the pool.
const AllOSTs = -1

// SetLayout sets how new files in a directory are laid out on the OSTs of a pool; it needs a mount.
func SetLayout(directory, pool string, layout []Component) []string {
	out := []string{"lfs", "setstripe"}
	for _, c := range layout {
		if len(layout) > 1 || c.End != 0 {
			out = append(out, "-E", kibibytes(c.End))
		}
		if c.OnMDT {
			out = append(out, "-L", "mdt")
			continue
		}
		out = append(out, "-c", strconv.Itoa(int(c.OSTs)))
		if c.StripeSize != 0 {
			out = append(out, "-S", kibibytes(c.StripeSize))
		}
		out = append(out, "-p", pool)
	}
	return append(out, directory)
}

// kibibytes is a size as lfs takes it; 0 is the end of the file.
func kibibytes(bytes int64) string {
	if bytes == 0 {
		return "-1"
	}
	return strconv.FormatInt(bytes>>10, 10) + "K"
}

// Directories is the default layout of new directories.
type Directories struct {
	// MDTs is the number of MDTs over which the entries of one directory are spread.
	MDTs int32
	// RoundRobinDepth is how many levels go to one MDT after the other.
	RoundRobinDepth int32
}

// SetDirectories sets how new directories below a mount are spread over the MDTs.
func SetDirectories(mount string, d Directories) []string {
	return []string{
		"lfs", "setdirstripe", "-D", "-i", "-1", "-c", strconv.Itoa(int(d.MDTs)),
		"--max-inherit", "-1", "--max-inherit-rr", strconv.Itoa(int(d.RoundRobinDepth)), mount,
	}
}

// SetParameter sets a parameter permanently for the whole filesystem; it runs on the MGS.
func SetParameter(name, value string) []string {
	return []string{"lctl", "set_param", "-P", name + "=" + value}
}

// EnforceQuotas permanently enforces the limits of users, groups and projects on all MDTs or all OSTs of the filesystem; it runs on the
// MGS. The real one took about 10 s (2.17.57, emulated).
func (c Commands) EnforceQuotas() [][]string {
	return [][]string{{"lctl", "conf_param", c.FSName + ".quota.mdt=ugp"}, {"lctl", "conf_param", c.FSName + ".quota.ost=ugp"}}
}

// SetProject assigns a directory to a project; files and directories that are made in it inherit the project.
func SetProject(directory string, id int32) []string {
	return []string{"lfs", "project", "-p", strconv.Itoa(int(id)), "-s", directory}
}

// LimitProject sets the largest number of bytes and of files for a project; 0 means no limit. Limits are kept in KiB.
func LimitProject(mount string, id int32, bytes, files int64) []string {
	space, number := strconv.FormatInt(bytes/1024, 10)+"K", strconv.FormatInt(files, 10)
	return []string{"lfs", "setquota", "-p", strconv.Itoa(int(id)), "-b", "0", "-B", space, "-i", "0", "-I", number, mount}
}

// StopNewObjects keeps an MDS from making objects on an OST, immediately and until the MDS restarts; it runs on every node with an MDT.
func (c Commands) StopNewObjects(ost int32) []string {
	return []string{"lctl", "set_param", "osp." + c.osp(ost) + ".max_create_count=0"}
}

func (c Commands) osp(ost int32) string { return Target{c.FSName, OST, ost}.String() + "-osc-MDT*" }

// Migrate moves the files that have objects on an OST to others, within their layouts, while programs use them. It ends with 0 although it
// skips files (lfs_migrate of 2.15 to 2.17). File names are separated by NULs: users choose them, and a name may contain a newline.
func Migrate(mount string, ost int32) []string {
	return []string{"sh", "-c", `lfs find "$0" --ost "$1" -0 | lfs_migrate -y -0`, mount, strconv.Itoa(int(ost))}
}

// ProveEmpty ends with 0 when no file has objects on an OST, and lfs find could search everything. It prints no name of a file, and ends at
// the first one: users choose how many files there are, and how long their names are.
func ProveEmpty(mount string, ost int32) []string {
	return []string{
		"sh", "-c", `found=$({ lfs find "$0" --ost "$1" 2>&1 || echo failed; } | head -c 9); test "$found" != failed || exit 1; ` +
			`test -z "$found" || { echo "files have objects on OST $1: on a client, lfs find MOUNT --ost $1 names them" >&2; exit 1; }`,
		mount, strconv.Itoa(int(ost)),
	}
}

// Deactivate declares, through the MGS, to all servers and clients that an OST does not come back. It takes effect after it has returned.
func (c Commands) Deactivate(ost int32) []string {
	return []string{"lctl", "conf_param", Target{c.FSName, OST, ost}.String() + ".osc.active=0"}
}

// Forget removes an OST from the configuration that the MGS keeps (2.16 and later). It also cancels Deactivate, so it is the last step,
// when the OST is unmounted.
func (c Commands) Forget(ost int32) []string {
	return []string{"lctl", "--device", string(MGT), "del_ost", "--target", Target{c.FSName, OST, ost}.String()}
}
