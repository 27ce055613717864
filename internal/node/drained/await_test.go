package drained

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
)

var owner = spec.Owner{Namespace: "storage", Name: "scratch", UID: "1"}

// aTarget is a directory on the node with the marker and the directories of a storage target.
func aTarget(t *testing.T) spec.AwaitEmpty {
	t.Helper()
	path := t.TempDir()
	config := spec.AwaitEmpty{
		Owner: owner, Target: spec.Target{Name: "scratch-hdd-node1", Path: path, Directory: true},
		Directories: []string{path + "/data/chunks", path + "/data/buddymir"},
	}
	for _, d := range config.Directories {
		NewWithT(t).Expect(os.MkdirAll(filepath.Join(d, "u0", "5", "6"), 0o700)).To(Succeed())
	}
	put(t, path+"/data/targetNumID", "101\n")
	mark(t, config, spec.Marker{Owner: owner, Component: "storage", State: spec.MarkerInitialized})
	return config
}

func mark(t *testing.T, config spec.AwaitEmpty, marker spec.Marker) {
	t.Helper()
	marker.Version = cmp.Or(marker.Version, spec.MarkerVersion)
	content, err := json.Marshal(marker)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	put(t, filepath.Join(config.Target.Path, spec.MarkerFile), string(content))
}

func put(t *testing.T, path, content string) {
	t.Helper()
	NewWithT(t).Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
}

// said holds the lines in their order.
type said struct {
	mutex sync.Mutex
	lines []string
}

func (s *said) say(line string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.lines = append(s.lines, line)
}

func (s *said) all() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]string(nil), s.lines...)
}

const sure, empty = "no file is left; once more to be sure", "no file is left: the target scratch-hdd-node1 is empty"

func TestATargetWithoutFilesIsEmptyAtTheSecondLook(t *testing.T) {
	g, s := NewWithT(t), &said{}
	g.Expect(await(t.Context(), aTarget(t), s.say, time.Millisecond)).To(Succeed())
	g.Expect(s.all()).To(Equal([]string{sure, empty}))
}

func TestOneLookIsNotEnough(t *testing.T) {
	g, s := NewWithT(t), &said{}
	ctx, cancel := context.WithCancel(t.Context())
	err := await(ctx, aTarget(t), func(line string) { s.say(line); cancel() }, time.Hour)
	g.Expect(err).To(MatchError("stopped before it was sure that the target scratch-hdd-node1 is empty: " + sure))
	g.Expect(s.all()).To(Equal([]string{sure}))
}

func TestItWaitsUntilTheLastFileIsGoneAndReportsHowManyAreLeft(t *testing.T) {
	g, s, config := NewWithT(t), &said{}, aTarget(t)
	files := []string{
		filepath.Join(config.Directories[0], "0-1-2"), filepath.Join(config.Directories[0], "u0", "5", "6", "0-1-1"),
		filepath.Join(config.Directories[1], "u0", "5", "0-1-3"),
	}
	for _, f := range files {
		put(t, f, "")
	}
	ended := make(chan error, 1)
	go func() { ended <- await(t.Context(), config, s.say, time.Millisecond) }()
	for i, line := range []string{"3 files are left", "2 files are left", "1 file is left"} {
		g.Eventually(s.all).WithTimeout(patience.Bound(time.Minute)).Should(HaveLen(i + 1))
		g.Expect(s.all()[i]).To(Equal(line))
		g.Expect(ended).NotTo(Receive())
		g.Expect(os.Remove(files[i])).To(Succeed())
	}
	g.Eventually(ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
	g.Expect(s.all()).To(Equal([]string{"3 files are left", "2 files are left", "1 file is left", sure, empty}))
}

func TestAFileThatComesBackRestartsTheCount(t *testing.T) {
	g, s, config := NewWithT(t), &said{}, aTarget(t)
	file := filepath.Join(config.Directories[0], "0-1-2")
	g.Expect(await(t.Context(), config, func(line string) {
		s.say(line)
		switch {
		case line == sure && len(s.all()) == 1:
			put(t, file, "")
		case line == "1 file is left":
			g.Expect(os.Remove(file)).To(Succeed())
		}
	}, time.Millisecond)).To(Succeed())
	g.Expect(s.all()).To(Equal([]string{sure, "1 file is left", sure, empty}))
}

func TestWhichEntriesCountAsFiles(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, directory string)
		left int
	}{
		"empty directories at any depth are no data": {func(t *testing.T, directory string) {
			t.Helper()
			NewWithT(t).Expect(os.MkdirAll(directory+"/a/b/c/d/e/f", 0o700)).To(Succeed())
		}, 0},
		"a link is one file, and what it leads to is not counted": {func(t *testing.T, directory string) {
			t.Helper()
			other := t.TempDir()
			put(t, other+"/1", "")
			put(t, other+"/2", "")
			NewWithT(t).Expect(os.Symlink(other, directory+"/link")).To(Succeed())
		}, 1},
		"a pipe counts, and is not opened": {func(t *testing.T, directory string) {
			t.Helper()
			NewWithT(t).Expect(syscall.Mkfifo(directory+"/pipe", 0o600)).To(Succeed())
		}, 1},
		"a large target is counted to its limit only": {func(t *testing.T, directory string) {
			t.Helper()
			for i := range most + 10 {
				put(t, fmt.Sprintf("%s/%d", directory, i), "")
			}
		}, most + 1},
	} {
		t.Run(name, func(t *testing.T) {
			g, config := NewWithT(t), aTarget(t)
			c.make(t, config.Directories[0])
			g.Expect(look(t.Context(), config)).To(Equal(c.left))
		})
	}
	g := NewWithT(t)
	g.Expect(describe(most)).To(Equal("10000 files are left"))
	g.Expect(describe(most + 1)).To(Equal("more than 10000 files are left"))
}

func TestATargetIsNotCalledEmptyWhen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, config *spec.AwaitEmpty)
		reason string
	}{
		"a directory is not there": {func(t *testing.T, config *spec.AwaitEmpty) {
			t.Helper()
			NewWithT(t).Expect(os.RemoveAll(config.Directories[1])).To(Succeed())
		}, "data/buddymir: no such file or directory; whether it is empty can't be said"},
		"a directory is a link": {func(t *testing.T, config *spec.AwaitEmpty) {
			t.Helper()
			g := NewWithT(t)
			g.Expect(os.RemoveAll(config.Directories[1])).To(Succeed())
			g.Expect(os.Symlink(t.TempDir(), config.Directories[1])).To(Succeed())
		}, "can't look into"},
		"the way to it is a link": {func(t *testing.T, config *spec.AwaitEmpty) {
			t.Helper()
			g, elsewhere := NewWithT(t), t.TempDir()
			g.Expect(os.Rename(config.Target.Path+"/data", elsewhere+"/data")).To(Succeed())
			g.Expect(os.Symlink(elsewhere+"/data", config.Target.Path+"/data")).To(Succeed())
		}, "can't look into"},
		"the target is a link": {func(t *testing.T, config *spec.AwaitEmpty) {
			t.Helper()
			link := filepath.Join(t.TempDir(), "link")
			NewWithT(t).Expect(os.Symlink(config.Target.Path, link)).To(Succeed())
			config.Target.Path, config.Directories = link, []string{link + "/data/chunks"}
		}, "can't open"},
		"it is not there": {func(_ *testing.T, config *spec.AwaitEmpty) {
			config.Target.Path, config.Directories = "/no/such/target", []string{"/no/such/target/chunks"}
		}, "can't open /no/such/target"},
		"it has no marker": {func(t *testing.T, config *spec.AwaitEmpty) {
			t.Helper()
			NewWithT(t).Expect(os.Remove(filepath.Join(config.Target.Path, spec.MarkerFile))).To(Succeed())
		}, "has no marker"},
		"its marker is a link": {func(t *testing.T, config *spec.AwaitEmpty) {
			t.Helper()
			g, marker := NewWithT(t), filepath.Join(config.Target.Path, spec.MarkerFile)
			g.Expect(os.Rename(marker, marker+".old")).To(Succeed())
			g.Expect(os.Symlink(marker+".old", marker)).To(Succeed())
		}, "has no marker"},
		"its marker is damaged": {func(t *testing.T, config *spec.AwaitEmpty) {
			t.Helper()
			put(t, filepath.Join(config.Target.Path, spec.MarkerFile), "{")
		}, "has a damaged marker"},
		"its marker is of a newer operator": {func(t *testing.T, config *spec.AwaitEmpty) {
			t.Helper()
			mark(t, *config, spec.Marker{Version: spec.MarkerVersion + 1, Owner: owner, State: spec.MarkerInitialized})
		}, "the program is older than the file"},
		"it is another FileSystem's": {func(t *testing.T, config *spec.AwaitEmpty) {
			t.Helper()
			mark(t, *config, spec.Marker{Owner: spec.Owner{Namespace: "storage", Name: "home", UID: "2"}, State: spec.MarkerInitialized})
		}, "belongs to the FileSystem storage/home"},
		"it is that of an earlier FileSystem": {func(t *testing.T, config *spec.AwaitEmpty) {
			t.Helper()
			mark(t, *config, spec.Marker{Owner: spec.Owner{Namespace: "storage", Name: "scratch", UID: "0"}, State: spec.MarkerInitialized})
		}, "(uid 0), not to storage/scratch (uid 1)"},
		"it was never used": {func(t *testing.T, config *spec.AwaitEmpty) {
			t.Helper()
			mark(t, *config, spec.Marker{Owner: owner, State: spec.MarkerPreparing})
		}, "was never initialized"},
		"no directory is named": {func(_ *testing.T, config *spec.AwaitEmpty) { config.Directories = nil }, "names no directory"},
		"a directory is elsewhere": {func(t *testing.T, config *spec.AwaitEmpty) {
			t.Helper()
			config.Directories = append(config.Directories, t.TempDir())
		}, "is not one below"},
		"a directory leads out of it": {func(_ *testing.T, config *spec.AwaitEmpty) {
			config.Directories = append(config.Directories, config.Target.Path+"/../x")
		}, "is not one below"},
		"a disk is not provisioned": {func(_ *testing.T, config *spec.AwaitEmpty) { config.Target.Directory = false }, "is not provisioned yet"},
		"a disk is not mounted": {func(_ *testing.T, config *spec.AwaitEmpty) {
			config.Target.Directory, config.Target.UUID = false, "0a1b2c3d-0000-4000-8000-0000000000aa"
		}, "is not mounted"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s, config := NewWithT(t), &said{}, aTarget(t)
			c.change(t, &config)
			g.Expect(await(t.Context(), config, s.say, time.Millisecond)).To(MatchError(ContainSubstring(c.reason)))
			g.Expect(s.all()).To(BeEmpty())
		})
	}
}

func TestATargetThatGoesWhileItIsWaitedForIsNotEmpty(t *testing.T) {
	g, s, config := NewWithT(t), &said{}, aTarget(t)
	err := await(t.Context(), config, func(line string) {
		s.say(line)
		g.Expect(os.Remove(filepath.Join(config.Target.Path, spec.MarkerFile))).To(Succeed())
	}, time.Millisecond)
	g.Expect(err).To(MatchError(ContainSubstring("has no marker")))
	g.Expect(s.all()).To(Equal([]string{sure}))
}
