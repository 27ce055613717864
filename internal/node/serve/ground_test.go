package serve_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/network"
	"parallelfs.dev/operator/internal/node/serve"
	"parallelfs.dev/operator/internal/node/spec"
)

// ground returns the checks of a node with version 2.15.5 of the filesystem and its network up.
func ground() *serve.Ground {
	return &serve.Ground{
		Config:   spec.Serve{Owner: owner, Version: "2.15.6", Network: spec.KernelNetwork{Name: "tcp", List: []string{"list"}}},
		Software: func(context.Context) (string, string) { return "2.15.5", "" },
		Network: network.Node{
			Run: func(context.Context, []string) (format.Answer, error) {
				return format.Answer{Stdout: "10.0.0.1@tcp\n"}, nil
			},
			Lookup:     func(string) (string, bool) { return "", false },
			Interfaces: func() ([]environment.Interface, error) { return nil, nil },
		},
	}
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
			ground := ground()
			ground.Software = func(context.Context) (string, string) { return c.version, c.missing }
			if err := ground.Ready(t.Context(), nil); c.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			}
		})
	}
}
