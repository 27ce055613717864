package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"parallelfs.dev/operator/controllers/agents"
	"parallelfs.dev/operator/controllers/filesystem"
	"parallelfs.dev/operator/internal/backend/all"
	"parallelfs.dev/operator/internal/node/probe"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/telemetry"
	"parallelfs.dev/operator/test/patience"
)

// freeAddress returns an address of this machine that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}

// floodFromHere opens 1000 connections from the address that this test asks from, and opens one in ten again whenever it is closed. A third
// of them is silent, a third sends a part of a request, and a third asks without a signature.
func floodFromHere(t *testing.T, address, path string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	const connections = 1000
	var flood, opened sync.WaitGroup
	opened.Add(connections)
	for i := range connections {
		says := []string{"", "G", "GET " + path + " HTTP/1.1\r\nHost: node\r\n\r\n"}[i%3]
		flood.Go(func() {
			for first := true; first || i%10 == 0 && ctx.Err() == nil; first = false {
				connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
				if first {
					opened.Done()
				}
				if err != nil {
					continue
				}
				end := context.AfterFunc(ctx, func() { _ = connection.Close() })
				_, _ = io.WriteString(connection, says)
				_, _ = io.Copy(io.Discard, connection) // until the listener closes it
				end()
				_ = connection.Close()
			}
		})
	}
	opened.Wait()
	t.Cleanup(func() {
		stop()
		flood.Wait()
	})
}

func TestAFloodFromTheManagersOwnAddressKeepsNoneOfItsQuestionsOut(t *testing.T) {
	const questions = 4
	for name, prober := range all.Backends(0).Probers() {
		t.Run("probe of "+name, func(t *testing.T) {
			t.Parallel()
			g, key := NewWithT(t), filepath.Join(t.TempDir(), "key")
			g.Expect(os.WriteFile(key, []byte("correct-horse"), 0o600)).To(Succeed())
			told := spec.Probe{Backend: name, Address: "127.0.0.1:1", Listen: freeAddress(t), KeyFile: key, IntervalSeconds: 60}
			told.FileSystem.UID = "7"
			p, err := probe.New(told, prober.Questions("0.0.0", told.Address), nil, slog.New(slog.DiscardHandler))
			g.Expect(err).NotTo(HaveOccurred())
			listens(t, func(ctx context.Context) { _ = p.Run(ctx) }, told.Listen)
			floodFromHere(t, told.Listen, "/state?nonce=stranger")
			manager := filesystem.NewHTTPStateReader(time.Minute)
			question := filesystem.Question{URL: "http://" + told.Listen + "/state", Key: "correct-horse", FileSystemUID: "7"}
			for range questions {
				_, err := manager.State(t.Context(), question)
				g.Expect(err).To(MatchError(HavePrefix("the probe reports: ")), "it answers that no filesystem runs here")
			}
		})
	}
	t.Run("agent", func(t *testing.T) {
		t.Parallel()
		g, address := NewWithT(t), freeAddress(t)
		handler := telemetry.New(telemetry.Host{}, time.Second).Handler("n1")
		listens(t, func(ctx context.Context) { telemetry.Serve(ctx, address, handler, func(error) {}) }, address)
		host, text, err := net.SplitHostPort(address)
		g.Expect(err).NotTo(HaveOccurred())
		port, err := strconv.Atoi(text)
		g.Expect(err).NotTo(HaveOccurred())
		floodFromHere(t, address, "/telemetry?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z")
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}},
		}}
		reader := agents.NewReader(fake.NewClientBuilder().WithObjects(node).Build(), port, time.Minute)
		for range questions {
			now := time.Now()
			scratch := client.ObjectKey{Namespace: "storage", Name: "scratch"}
			found := reader.Telemetry(t.Context(), scratch, []string{"n1"}, now.Add(-time.Minute), now)
			g.Expect(found).To(HaveLen(1))
			g.Expect(found[0].Problem).To(HavePrefix("its agent has no samples of that time"), "it answers")
		}
	})
}

// listens runs a server until the end of the test, and waits until it listens.
func listens(t *testing.T, serve func(ctx context.Context), address string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var server sync.WaitGroup
	server.Go(func() { serve(ctx) })
	t.Cleanup(func() {
		stop()
		server.Wait()
	})
	NewWithT(t).Eventually(func() error {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			return fmt.Errorf("not yet: %w", err)
		}
		return connection.Close()
	}).WithTimeout(patience.Bound(time.Minute)).Should(Succeed())
}
