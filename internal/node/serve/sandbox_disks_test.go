//go:build disks

package serve_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"parallelfs.dev/operator/test/doubles/lustre/sandbox"
)

// sandboxed is set in the process with its own mounts, networks and processes: a node whose programs are the doubles of Lustre's.
const sandboxed = "LUSTRE_NODE_SANDBOX"

// programs is the directory with the node binary and the double.
var programs string

// genuine is true on a machine with a real Lustre (test/vm), which is then the node itself: its interface has the address, and it has no
// Lustre network.
var genuine = os.Getenv("LUSTRE_REAL") != ""

func TestMain(m *testing.M) {
	if genuine {
		programs = "/node"
		os.Exit(m.Run())
	}
	if programs = os.Getenv(sandboxed); programs != "" {
		if err := furnish(); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	}
	os.Exit(func() int {
		var err error
		if programs, err = os.MkdirTemp("", "lustre-node"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(programs)
		for name, pack := range map[string]string{"node": "cmd/node", "lustre-double": "test/doubles/lustre/cmd/lustre-double"} {
			build := exec.Command("go", "build", "-o", filepath.Join(programs, name), "parallelfs.dev/operator/"+pack)
			if output, err := build.CombinedOutput(); err != nil {
				panic(string(output))
			}
		}
		return sandbox.Run(sandboxed, programs)
	}())
}

// furnish makes the node. Mounts below /mnt propagate to the containers that the tests start, as on a real node those below a shared
// directory propagate to its pods.
func furnish() error {
	script := `set -e
mount --make-rprivate /
mount -t proc proc /proc
mkdir "$PROGRAMS"/lab
mount -t tmpfs lab "$PROGRAMS"/lab
mkdir "$PROGRAMS"/lab/sbin "$PROGRAMS"/lab/sbin-work "$PROGRAMS"/lab/etc "$PROGRAMS"/lab/etc-work
for name in mkfs.lustre tunefs.lustre mount.lustre mount.lustre_tgt umount.fuse.lustre umount.fuse.lustre_tgt lctl lfs lfs_migrate llog_reader lnetctl mds-survey obdfilter-survey; do
  ln -s "$PROGRAMS"/lustre-double "$PROGRAMS"/lab/sbin/$name
done
mount -t overlay overlay -o "lowerdir=/usr/sbin,upperdir=$PROGRAMS/lab/sbin,workdir=$PROGRAMS/lab/sbin-work" /usr/sbin
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$PROGRAMS/lab/etc,workdir=$PROGRAMS/lab/etc-work" /etc
mkdir -p /etc/modprobe.d
mount -t tmpfs run /run
mount -t tmpfs mnt /mnt
mkdir /mnt/.lustre-double
mount --make-shared /mnt
mkdir -p /dev/disk
mount -t tmpfs disk /dev/disk
mkdir /dev/disk/by-id
ip link set lo up
ip link add eth7 type veth peer name peer7
ip link set peer7 up
ip link set eth7 up
ip addr add 192.168.77.1/24 dev eth7`
	command := exec.Command("sh", "-c", script)
	command.Env = append(os.Environ(), "PROGRAMS="+programs)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}
