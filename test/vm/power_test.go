//go:build vm

package vm_test

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/backend/moosefs"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// nodeIP is the address of the machine. A MooseFS master refuses chunkservers from 127.0.0.1.
	nodeIP = "10.0.0.1"
	// kept is a directory that outlives a power cut, and told is where a pod has its configuration.
	kept, config = "/var/lib/parallelfs/kept", podspec.ToldDirectory
	// nodeScript starts all that a node starts by itself after a boot, and returns at once. Like a kubelet, it starts daemons, the mount and
	// a program in no order, and starts again what has ended. The agent begins later and passes over its target again and again.
	//
	// The first time after the program has opened its file, the master stops and continues when the disk is mounted. Meanwhile, no question
	// about that file is answered.
	nodeScript = `
modprobe fuse
ip link set lo up
ip addr add ` + nodeIP + `/32 dev lo
export NODE_NAME=` + nodeName + ` NODE_IP=` + nodeIP + `
mkdir -p ` + config + ` ` + podspec.RunDirectory + `
cp ` + kept + `/told/* ` + config + `
again() {
  log=/run/log-$1
  shift
  while [ ! -e /run/ends ]; do "$@" >> $log 2>&1 || true; sleep 0.5; done
}
again chunkserver node run --spec ` + config + `/chunkserver-ssd.json &
again client node mount --spec ` + config + `/client.json &
again master node run --spec ` + config + `/master.json &
program() (
  node check-mount --spec ` + config + `/client.json || exit
  exec 9<> ` + mountPath + `/open
  echo > /run/opened
  while [ ! -e /run/ends ]; do sleep 0.5; done
)
again program program &
agent() {
  while [ ! -e /run/ends ]; do pass < ` + kept + `/target.json > /run/passed.new && mv /run/passed.new /run/passed; sleep 0.5; done
}
(
  until [ -e /run/opened ]; do sleep 0.1; done
  master=$(pidof mfsmaster)
  kill -STOP $master
  agent &
  until grep -q ' $TARGET ' /proc/self/mountinfo; do sleep 0.1; done
  echo > /run/mounted
  kill -CONT $master
) > /run/log-agent 2>&1 &
`
	// nodeEnds ends all of it.
	nodeEnds = "touch /run/ends; killall node mfsmaster mfschunkserver 2>/dev/null || true; " +
		"while pidof node mfsmaster mfschunkserver mfsmount pass > /dev/null; do sleep 0.1; done; " +
		"chattr -i " + mountPath + "; rmdir " + mountPath
	thesis = mountPath + "/thesis.tex"
)

// configOfMooseFS returns the configuration files that the operator gives to the pods of a MooseFS whose only node is the machine.
func configOfMooseFS(t *testing.T, target v1alpha1.StorageTarget) map[string]string {
	t.Helper()
	everywhere := v1alpha1.NodeSelector{"vm": ""}
	fs := fileSystem(v1alpha1.TargetsSpec{Devices: []v1alpha1.DeviceReference{{Node: nodeName, ID: "the-target"}}})
	fs.Spec.Version = "3.0.117"
	fs.Spec.MooseFS = &v1alpha1.MooseFSSpec{
		BasePort: 9419, Config: v1alpha1.MooseFSConfig{Storage: v1alpha1.Options{"HDD_LEAVE_SPACE_DEFAULT": "16MiB"}},
	}
	fs.Spec.MetadataServers.NodeSelector = everywhere
	fs.Spec.StoragePools[0].NodeSelector, fs.Spec.StoragePools[0].Copies = everywhere, 1
	fs.Spec.Clients = &v1alpha1.ClientsSpec{NodeSelector: everywhere, MountPath: mountPath}
	target.Spec.Node = nodeName
	in := backend.Input{
		Chosen: true, FileSystem: fs, Targets: []v1alpha1.StorageTarget{target},
		Nodes:    []backend.Node{{Name: nodeName, IP: nodeIP, Ready: true, Labels: map[string]string(everywhere)}},
		Images:   backend.Images{Node: "node", Daemons: map[string]string{"moosefs-3.0.117": "moosefs"}},
		Password: "correct-horse-battery-staple", ProbeKey: "tr0ub4dor-and-3",
	}
	backendtest.Remember(t, moosefs.New(), &in)
	objects, err := moosefs.New().Members(in)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.Secret:
			for name, content := range o.Data {
				files[name] = string(content)
			}
		case *corev1.ConfigMap:
			maps.Copy(files, o.Data)
		}
	}
	return files
}

// writeFile writes a file in the machine.
func (m *machine) writeFile(t *testing.T, file, content string) {
	t.Helper()
	m.run(t, "mkdir", "-p", path.Dir(file))
	if code, _, stderr := m.try(t, content, "tee", file); code != 0 {
		t.Fatalf("%s: %s", file, stderr)
	}
}

// until waits until a condition of the shell is true in the machine, and shows the logs of the node if it does not come true.
func (m *machine) until(t *testing.T, condition string) {
	t.Helper()
	code, out, _ := m.try(t, "", "sh", "-c", "for i in $(seq 1200); do "+condition+" && exit 0; sleep 0.2; done; "+
		"tail -n 15 /run/log-* /run/passed*; ps -o pid,stat,args; exit 1")
	if code != 0 {
		t.Fatalf("%s is still not true: %s", condition, out)
	}
}

// testServesItself starts a MooseFS whose servers and client are all on the machine, and writes a file.
func testServesItself(t *testing.T, m *machine, target v1alpha1.StorageTarget) {
	for name, content := range configOfMooseFS(t, target) {
		m.writeFile(t, kept+"/told/"+name, content)
	}
	fs := fileSystem(v1alpha1.TargetsSpec{})
	m.run(t, "mkdir", "-p", path.Dir(podspec.NodeFile(fs)), string(fs.Spec.MetadataServers.Targets.Directories[0]))
	m.write(t, podspec.NodeFile(fs), spec.NodeFile{
		Version: spec.NodeFileVersion, FileSystem: owner(), Node: nodeName, Generation: 1,
		Members: []spec.Member{{Name: "master"}, {Name: "chunkserver-ssd", Targets: []spec.Target{specTarget(target)}}},
	})
	m.write(t, kept+"/target.json", target)
	m.writeFile(t, kept+"/node.sh", strings.ReplaceAll(nodeScript, "$TARGET", target.Status.MountPath))
	m.startNode(t)
	m.until(t, "echo words > "+thesis+" 2>/dev/null && sync "+thesis)
	// By default, a chunkserver calls no fsync when a program does (HDD_FSYNC_BEFORE_CLOSE, mfschunkserver.cfg(5)). The whole machine is
	// synced.
	m.sh(t, "sync")
}

// startNode starts all that the machine starts by itself.
func (m *machine) startNode(t *testing.T) {
	t.Helper()
	m.run(t, "sh", "-c", "exec sh "+kept+"/node.sh > /run/log-node 2>&1 < /dev/null")
}

// cut takes the machine's power away.
func (m *machine) cut(t *testing.T) {
	t.Helper()
	if err := m.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-m.ended
	_ = m.port.Close()
	_ = os.Remove(filepath.Join(m.directory, "port")) // the listener has removed it, mostly
}

// testPower looks at the machine after its power was cut while it served and mounted a filesystem.
func testPower(t *testing.T, m *machine, target v1alpha1.StorageTarget) {
	NewWithT(t).Expect(m.sh(t, fmt.Sprintf("grep -c ' %s ' /proc/self/mountinfo || true", target.Status.MountPath))).To(Equal("0\n"))
	m.startNode(t)
	t.Run("the disk is mounted although a process has a file open on a mount that does not answer", func(t *testing.T) {
		m.until(t, "[ -e /run/mounted ]")
	})
	t.Run("a file that was synced before has its content", func(t *testing.T) {
		m.until(t, "[ words = \"$(timeout 20 cat "+thesis+" 2>&1 | tee /run/log-cat)\" ]")
	})
	t.Run("programs write again", func(t *testing.T) {
		m.until(t, "echo more >> "+thesis+" && sync "+thesis)
	})
	m.sh(t, nodeEnds)
}
