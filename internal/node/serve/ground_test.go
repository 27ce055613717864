package serve_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/network"
	"parallelfs.dev/operator/internal/node/serve"
	"parallelfs.dev/operator/internal/node/spec"
)

// ground is a node with version 2.15.5 of the filesystem, whose network is up, and that has a directory for each root.
func ground(t *testing.T) (*serve.Ground, *strings.Builder) {
	t.Helper()
	root, log := t.TempDir(), &strings.Builder{}
	NewWithT(t).Expect(os.MkdirAll(filepath.Join(root, "etc/modprobe.d"), 0o755)).To(Succeed())
	return &serve.Ground{
		Told:     spec.Serve{Owner: owner, Version: "2.15.6", Network: spec.KernelNetwork{Name: "tcp", List: []string{"list"}}},
		Software: func(context.Context) (string, string) { return "2.15.5", "" },
		Network: network.Node{
			Run: func(context.Context, []string) (format.Answer, error) {
				return format.Answer{Stdout: "10.0.0.1@tcp\n"}, nil
			},
			Lookup:     func(string) (string, bool) { return "", false },
			Interfaces: func() ([]environment.Interface, error) { return nil, nil },
		},
		Root: root, Sys: filepath.Join(root, "sys"), Writer: durable.Writer{Chown: func(string, int, int) error { return nil }},
		Log: slog.New(slog.NewTextHandler(log, nil)),
	}, log
}

func TestTargetsAreMountedByTheMinorVersionThatIsAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		version, missing, says string
	}{
		"another patch":     {version: "2.15.5"},
		"another minor":     {version: "2.16.1", says: "this node has version 2.16.1 of the filesystem's modules and programs, and spec.version asks for 2.15.6"},
		"a longer number":   {version: "2.150.6", says: "this node has version 2.150.6"},
		"none":              {says: "say which version of the filesystem they are"},
		"something missing": {version: "2.15.5", missing: "the node lacks a module; install it", says: "the node lacks a module; install it"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ground, _ := ground(t)
			ground.Software = func(context.Context) (string, string) { return c.version, c.missing }
			if err := ground.Ready(t.Context(), nil); c.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			}
		})
	}
}

func TestWhatModulesAreLoadedWithIsWrittenWhereThatIsAllowed(t *testing.T) {
	g := NewWithT(t)
	ground, _ := ground(t)
	ground.Told.ModuleOptions = &spec.ModuleOptions{Lines: "$(OPTIONS)", File: "/etc/modprobe.d/parallelfs-scratch.conf"}
	variables := map[string]string{"OPTIONS": "options cpt pattern=\"0[0-1] 1[2-3]\"\n"}
	path := filepath.Join(ground.Root, "etc/modprobe.d/parallelfs-scratch.conf")
	g.Expect(ground.Ready(t.Context(), variables)).To(Succeed())
	g.Expect(os.ReadFile(path)).To(BeEquivalentTo("# Written by ParallelFS Operator for FileSystem scratch in namespace default.\noptions cpt pattern=\"0[0-1] 1[2-3]\"\n"))
	ground.Told.ModuleOptions.File = "/etc/shadow"
	g.Expect(ground.Ready(t.Context(), variables)).To(MatchError(ContainSubstring(`"/etc/shadow" is no file of modprobe.d`)))
	ground.Told.ModuleOptions.File = ""
	g.Expect(os.Remove(path)).To(Succeed())
	g.Expect(ground.Ready(t.Context(), variables)).To(Succeed())
	g.Expect(path).NotTo(BeAnExistingFile(), "nobody has allowed it")
	g.Expect(ground.Ready(t.Context(), nil)).To(MatchError(ContainSubstring("OPTIONS is not set")))
}

func TestModulesThatAreLoadedWithOtherOptionsAreSaidOnce(t *testing.T) {
	g := NewWithT(t)
	ground, log := ground(t)
	g.Expect(os.MkdirAll(filepath.Join(ground.Sys, "module/cpt/parameters"), 0o755)).To(Succeed())
	for name, value := range map[string]string{"pattern": "N\n", "threads": "[0]\n"} {
		g.Expect(os.WriteFile(filepath.Join(ground.Sys, "module/cpt/parameters", name), []byte(value), 0o600)).To(Succeed())
	}
	ground.Told.ModuleOptions = &spec.ModuleOptions{Lines: "options cpt threads=[0] pattern=\"0[0-1] 1[2-3]\"\noptions other x=1"}
	for range 3 {
		g.Expect(ground.Ready(t.Context(), nil)).To(Succeed())
	}
	g.Expect(strings.Count(log.String(), "differ=")).To(Equal(1))
	g.Expect(log.String()).To(And(ContainSubstring(`cpt pattern is`), Not(ContainSubstring("threads is"))))
}
