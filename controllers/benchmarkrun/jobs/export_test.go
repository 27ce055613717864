package jobs

import (
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
	exporter "parallelfs.dev/operator/internal/node/export"
)

// credentials writes the files that the kubelet makes for the exporter's volume if the Secret has these keys (core/v1, SecretProjection: a
// key that is not in the Secret is an error, unless the source is optional).
func credentials(t *testing.T, g Gomega, job *batchv1.Job, keys map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for _, volume := range job.Spec.Template.Spec.Volumes {
		if volume.Name != "credentials" {
			continue
		}
		var sources []corev1.SecretProjection
		if volume.Secret != nil {
			sources = append(sources, corev1.SecretProjection{Items: volume.Secret.Items, Optional: volume.Secret.Optional,
				LocalObjectReference: corev1.LocalObjectReference{Name: volume.Secret.SecretName}})
		}
		if volume.Projected != nil {
			for _, source := range volume.Projected.Sources {
				sources = append(sources, *source.Secret)
			}
		}
		for _, source := range sources {
			g.Expect(source.Name).To(Equal("keys"))
			for _, item := range source.Items {
				content, there := keys[item.Key]
				optional := source.Optional != nil && *source.Optional
				g.Expect(there || optional).To(BeTrue(), "the pod does not start without the key %s", item.Key)
				if there {
					g.Expect(os.WriteFile(filepath.Join(directory, item.Path), []byte(content), 0o600)).To(Succeed())
				}
			}
		}
	}
	return directory
}

func TestTheExporterTrustsTheAuthorityOfTheSecret(t *testing.T) {
	g := NewWithT(t)
	backend := s3mem.New()
	g.Expect(backend.CreateBucket(t.Context(), "bench")).To(Succeed())
	server := httptest.NewTLSServer(gofakes3.New(backend, gofakes3.WithV4Auth(map[string]string{"lab": "hush"})).Server())
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)

	w := scopetest.Idle()
	w.Run.Spec.Results = &v1alpha1.ResultsSpec{ObjectStore: &v1alpha1.ObjectStore{Endpoint: server.URL, Bucket: "bench", SecretName: "keys"}}
	job, ok := render(w).Exporter().(*batchv1.Job)
	g.Expect(ok).To(BeTrue())
	files := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(files, "results.csv"), []byte("point\n"), 0o600)).To(Succeed())
	exports := func(keys map[string]string) error {
		_, err := exporter.Run(t.Context(), exporter.Options{
			Files: files, Timeout: time.Minute,
			S3: exporter.S3{Endpoint: server.URL, Bucket: "bench", Credentials: credentials(t, g, job, keys)},
		})
		return err
	}

	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	g.Expect(exports(map[string]string{"accessKey": "lab", "secretKey": "hush", "ca.crt": string(authority)})).To(Succeed())
	g.Expect(exports(map[string]string{"accessKey": "lab", "secretKey": "hush"})).To(
		MatchError(ContainSubstring("put the certificate of its authority into the Secret, as ca.crt")), "the key is optional")
}
