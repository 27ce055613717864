package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/telemetry"
)

// printed is the live side of a fake cluster, in which each container has printed a secret in several forms.
type printed struct{}

const (
	password = "correct-horse/battery+staple"
	quoted   = `it says "open", and \ more`
	keyLine  = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
	inConfig = "hunter22-hunter22"
)

func (printed) logs(_ context.Context, _, _, _ string, _ bool) (io.ReadCloser, error) {
	inJSON, err := json.Marshal(map[string]string{"password": quoted})
	lines := []string{
		"connecting with " + password, "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(password)),
		"GET /?token=" + url.QueryEscape(password), string(inJSON), keyLine, "config: " + inConfig, "the server is well", "cut in the middle of " + password[:10],
	}
	return io.NopCloser(strings.NewReader(strings.Join(lines, "\n"))), err
}

func (printed) samples(_ context.Context, _, pod string, port int32, query map[string]string) ([]byte, error) {
	if pod == "agent-oss2" || port != 9417 || query["fileSystem"] != "storage/scratch" {
		return nil, errors.New("connection refused")
	}
	return json.Marshal(telemetry.Answer{Node: "oss1", Time: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Summaries: []telemetry.Summary{
		{Node: "oss1", Target: "well", Seconds: 60, Samples: 60, Utilization: 0.93, MaxUtilization: 1, Queue: 12.4, WriteIOPS: 200, WriteBytesPerSecond: 210e6},
		{Node: "oss1", Target: "meta", Seconds: 60, Samples: 60, Utilization: 0.1},
		{Node: "oss1", Daemon: "chunkserver/hdd", Seconds: 60, Samples: 60, CPUs: 0.8, MaxCPUs: 1.5},
	}})
}

func (printed) version(context.Context) (string, error) { return "v1.33.1", nil }

// secretive is a FileSystem with secrets in all places that a bundle reads.
func secretive() (objects []client.Object, secrets []string) {
	objects = eventful()
	fs := objects[0].(*v1alpha1.FileSystem)
	fs.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"note":"unknown-to-any-secret"}}`, v1alpha1.AnnotationBackUp: password}
	fs.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "somebody", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "parallelfs.dev/v1alpha1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`),
	}}
	fs.Status.Conditions[1].Message += " with " + password
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "scratch-master-1", Namespace: "storage", Labels: map[string]string{v1alpha1.LabelFileSystem: "scratch"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "master", Args: []string{"--password=" + password}, Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "of-no-secret-object"}},
		}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "master", RestartCount: 1}}},
	}
	stranger := pod.DeepCopy()
	stranger.Name, stranger.Labels = "stranger", nil
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s3", Namespace: "storage"}, Data: map[string][]byte{
		"secretKey": []byte(password + "\n"), "quoted": []byte(quoted), "tls.key": []byte("-----BEGIN PRIVATE KEY-----\n" + keyLine + "\n-----END PRIVATE KEY-----\n"),
		"config": []byte("user = me\npassword = " + inConfig + "\n"), "name": []byte("scratch"), "short": []byte("yes"),
	}}
	return append(objects, pod, stranger, secret, inventoried()[0]), []string{
		password, base64.StdEncoding.EncodeToString([]byte(password)), url.QueryEscape(password), quoted, `it says \"open\"`, keyLine, inConfig,
		"unknown-to-any-secret", "of-no-secret-object", "f:spec", password[:10],
	}
}

// filesOf unpacks a bundle.
func filesOf(t *testing.T, name string) map[string]string {
	t.Helper()
	g := NewWithT(t)
	data, err := os.ReadFile(name) // #nosec G304 -- a file of the test
	g.Expect(err).NotTo(HaveOccurred())
	unpacked, err := gzip.NewReader(bytes.NewReader(data))
	g.Expect(err).NotTo(HaveOccurred())
	archive, out := tar.NewReader(unpacked), map[string]string{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		g.Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(archive)
		g.Expect(err).NotTo(HaveOccurred())
		out[header.Name] = string(content)
	}
}

func TestNoSecretOfTheClusterIsInABundle(t *testing.T) {
	g := NewWithT(t)
	objects, secrets := secretive()
	name := filepath.Join(t.TempDir(), "dump.tar.gz")
	got := on(t, objects)("dump", "scratch", "-f", name)
	g.Expect(got.code).To(Equal(exitGood), got.stderr)
	files := filesOf(t, name)
	g.Expect(files).To(And(HaveKey("dump/manifest.json"), HaveKey("dump/objects/FileSystem.json"), HaveKey("dump/objects/StorageTarget.json"),
		HaveKey("dump/objects/NodeInventory.json"), HaveKey("dump/objects/Event.json"), HaveKey("dump/objects/Pod.json"),
		HaveKey("dump/logs/scratch-master-1/master.log"), HaveKey("dump/logs/scratch-master-1/master.previous.log")))
	g.Expect(files["dump/logs/scratch-master-1/master.log"]).To(And(ContainSubstring("the server is well"), ContainSubstring("connecting with "+leftOut)))
	g.Expect(files["dump/manifest.json"]).To(ContainSubstring(`"kubernetes": "v1.33.1"`))
	for file, content := range files {
		for _, secret := range secrets {
			g.Expect(strings.Contains(content, secret)).To(BeFalse(), "%s has %q", file, secret)
		}
		g.Expect(content).NotTo(ContainSubstring("stranger"), file)
	}
	info, err := os.Stat(name)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
	g.Expect(on(t, objects)("dump", "scratch", "-f", name).stderr).To(ContainSubstring("file exists"), "a file that is there is kept")
}

func TestABundleHasNoLogsIfSecretsCannotBeRead(t *testing.T) {
	g := NewWithT(t)
	objects, _ := secretive()
	_, pfs := clusterThrough(t, objects, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, is := list.(*corev1.SecretList); is {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)
		}
		return c.List(ctx, list, options...)
	}})
	name := filepath.Join(t.TempDir(), "dump.tar.gz")
	got := pfs("dump", "scratch", "-f", name)
	g.Expect(got.code).To(Equal(exitGood), got.stderr)
	g.Expect(got.stderr).To(ContainSubstring("Left out: all logs"))
	files := filesOf(t, name)
	g.Expect(files["dump/manifest.json"]).To(ContainSubstring("all logs: without the right to list Secrets"))
	for file := range files {
		g.Expect(file).NotTo(ContainSubstring("logs/"))
	}
}

func TestABundleAnswersAsTheClusterDid(t *testing.T) {
	g := NewWithT(t)
	name := filepath.Join(t.TempDir(), "dump.tar.gz")
	inventory := inventoried()[0].(*v1alpha1.NodeInventory)
	pfs := on(t, append(eventful(), inventory))
	g.Expect(pfs("dump", "scratch", "-f", name).code).To(Equal(exitGood))
	offline := on(t, nil)
	for _, args := range [][]string{
		{"status", "scratch"}, {"status"}, {"status", "scratch", "-o", "yaml"}, {"health"}, {"disks"}, {"disks", "--node", "oss3"}, {"events", "scratch"},
		{"events", "scratch", "-o", "json"},
	} {
		g.Expect(offline(append(args, "--from", name)...)).To(Equal(pfs(args...)), "%v", args)
	}
	g.Expect(offline("status", "archive", "--from", name).stderr).To(ContainSubstring("there is no FileSystem archive"))
}

func TestABundleIsBoundedAndListsWhatWasLeftOut(t *testing.T) {
	g := NewWithT(t)
	d := &dump{room: 10}
	d.add("fits", []byte("0123456789"))
	d.add("too-much", []byte("0"))
	g.Expect(d.entries).To(HaveLen(1))
	g.Expect(d.missing).To(Equal([]string{"too-much: the bundle would be too large"}))
}

func TestAFileThatIsNoBundleIsRefused(t *testing.T) {
	for name, content := range map[string]func(io.Writer){
		"text":           func(w io.Writer) { _, _ = io.WriteString(w, "hello") },
		"without a list": func(w io.Writer) { packed := gzip.NewWriter(w); _ = tar.NewWriter(packed).Close(); _ = packed.Close() },
		"another format": func(w io.Writer) {
			d := &dump{entries: []bundled{{bundleManifest, []byte(`{"format":"parallelfs.dev/dump-v9","taken":"2026-11-21T12:00:00Z"}`)}}}
			_ = d.write(w, whenSeen)
		},
		"a broken list": func(w io.Writer) {
			d := &dump{entries: []bundled{{bundleObjects + "/FileSystem.json", []byte(`{"items":[1]}`)}}}
			_ = d.write(w, whenSeen)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var data bytes.Buffer
			content(&data)
			file := filepath.Join(t.TempDir(), "dump.tar.gz")
			g.Expect(os.WriteFile(file, data.Bytes(), 0o600)).To(Succeed())
			got := on(t, nil)("status", "--from", file)
			g.Expect(got.code).To(Equal(exitFailed))
			g.Expect(got.stderr).To(ContainSubstring("read the support bundle " + file))
		})
	}
}
