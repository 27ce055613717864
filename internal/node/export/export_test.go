package export_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"

	"parallelfs.dev/operator/internal/node/export"
	"parallelfs.dev/operator/internal/node/objectstore/objectstoretest"
)

// mounted is a directory like a mounted ConfigMap: its files are symbolic links into a directory with a leading dot.
func mounted(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	data := filepath.Join(directory, "..2026_11_21")
	must(t, os.Mkdir(data, 0o755))
	must(t, os.Symlink("..2026_11_21", filepath.Join(directory, "..data")))
	for name, content := range files {
		must(t, os.WriteFile(filepath.Join(data, name), []byte(content), 0o600))
		must(t, os.Symlink(filepath.Join("..data", name), filepath.Join(directory, name)))
	}
	return directory
}

func must(t *testing.T, err error) {
	t.Helper()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	out := &bytes.Buffer{}
	writer := gzip.NewWriter(out)
	_, err := writer.Write([]byte(text))
	must(t, err)
	must(t, writer.Close())
	return out.String()
}

// store is an object store that checks signatures (version 4), with the bucket "bench" and one key.
func store(t *testing.T, before http.HandlerFunc) (objectstoretest.Store, string) {
	t.Helper()
	s := objectstoretest.Serve(t, before)
	return s, s.URL
}

func keys(t *testing.T, access, secret string) string {
	t.Helper()
	return mounted(t, map[string]string{"accessKey": access, "secretKey": secret})
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	return string(content)
}

func TestResultsAreWrittenToADirectoryUnpacked(t *testing.T) {
	g := NewWithT(t)
	to := filepath.Join(t.TempDir(), "lab", "creates-1b4e28ba")
	files := mounted(t, map[string]string{"results.json.gz": zipped(t, "{}\n"), "results.csv": "point\n0\n"})
	exported, err := export.Run(t.Context(), export.Options{Files: files, To: to, Timeout: time.Minute})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(exported).To(Equal([]string{filepath.Join(to, "results.csv"), filepath.Join(to, "results.json")}))
	g.Expect(read(t, filepath.Join(to, "results.json"))).To(Equal("{}\n"))
	g.Expect(read(t, filepath.Join(to, "results.csv"))).To(Equal("point\n0\n"))
	entries, err := os.ReadDir(to)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).To(HaveLen(2), "nothing temporary stays, and nothing of the ConfigMap's own directories comes along")
	info, err := os.Stat(filepath.Join(to, "results.csv"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o644)), "others may read them")

	files = mounted(t, map[string]string{"results.csv": "point\n0\n1\n"})
	_, err = export.Run(t.Context(), export.Options{Files: files, To: to, Timeout: time.Minute})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read(t, filepath.Join(to, "results.csv"))).To(Equal("point\n0\n1\n"), "a later export replaces the file")
	g.Expect(read(t, filepath.Join(to, "results.json"))).To(Equal("{}\n"), "and leaves others alone")
}

func TestResultsArePutToAnObjectStoreThatChecksSignatures(t *testing.T) {
	for name, prefix := range map[string]string{"below a prefix": "lab/creates-1b4e28ba", "without a prefix": ""} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			backend, endpoint := store(t, nil)
			large := strings.Repeat("point,value\n", 100_000)
			exported, err := export.Run(t.Context(), export.Options{
				Files: mounted(t, map[string]string{"results.json.gz": zipped(t, "{}\n"), "samples.csv.gz": zipped(t, large)}), Timeout: time.Minute,
				S3: export.S3{Endpoint: endpoint, Bucket: "bench", Prefix: prefix, Region: "eu-north-1", Credentials: keys(t, "lab", "hush\n")},
			})
			g.Expect(err).NotTo(HaveOccurred())
			if prefix != "" {
				prefix += "/"
			}
			g.Expect(exported).To(Equal([]string{"s3://bench/" + prefix + "results.json", "s3://bench/" + prefix + "samples.csv"}))
			g.Expect(backend.Object(t, prefix+"results.json")).To(Equal("{}\n"))
			g.Expect(backend.Object(t, prefix+"samples.csv")).To(Equal(large))
		})
	}
}

func TestAStoreWithACertificateOfItsOwnIsTrustedByTheSecretOnly(t *testing.T) {
	g := NewWithT(t)
	backend := s3mem.New()
	must(t, backend.CreateBucket(t.Context(), "bench"))
	server := httptest.NewTLSServer(gofakes3.New(backend, gofakes3.WithV4Auth(map[string]string{"lab": "hush"})).Server())
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	o := export.Options{
		Files: mounted(t, map[string]string{"results.csv": "point\n"}), Timeout: time.Minute,
		S3: export.S3{Endpoint: server.URL, Bucket: "bench", Credentials: keys(t, "lab", "hush")},
	}
	_, err := export.Run(t.Context(), o)
	g.Expect(err).To(MatchError(ContainSubstring("put the certificate of its authority into the Secret, as ca.crt")))

	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	o.S3.Credentials = mounted(t, map[string]string{"accessKey": "lab", "secretKey": "hush", "ca.crt": string(authority)})
	_, err = export.Run(t.Context(), o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objectstoretest.Store{Backend: backend}.Object(t, "results.csv")).To(Equal("point\n"))

	o.S3.Credentials = mounted(t, map[string]string{"accessKey": "lab", "secretKey": "hush", "ca.crt": "something else"})
	_, err = export.Run(t.Context(), o)
	g.Expect(err).To(MatchError("the key ca.crt in the Secret of the object store holds no certificate in PEM"))
}

func TestAStoreThatIsBusyIsAskedAgain(t *testing.T) {
	g := NewWithT(t)
	var asked atomic.Int32
	backend, endpoint := store(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && asked.Add(1) <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	_, err := export.Run(t.Context(), export.Options{
		Files: mounted(t, map[string]string{"results.csv": "point\n"}), Timeout: time.Minute,
		S3: export.S3{Endpoint: endpoint, Bucket: "bench", Credentials: keys(t, "lab", "hush")},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(asked.Load()).To(Equal(int32(3)))
	g.Expect(backend.Object(t, "results.csv")).To(Equal("point\n"))
}

func TestARefusedRequestIsMadeOnceAndReportedWithoutTheSecret(t *testing.T) {
	for name, test := range map[string]struct {
		bucket, access, secret string
		says                   string
	}{
		"a bucket that is not there": {"nowhere", "lab", "hush", "(NoSuchBucket); make the bucket, or name another"},
		"a wrong secret":             {"bench", "lab", "loud-secret", "(SignatureDoesNotMatch); mend accessKey and secretKey in the Secret"},
		"an unknown access key":      {"bench", "somebody", "loud-secret", "mend accessKey and secretKey in the Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var put atomic.Int32
			_, endpoint := store(t, func(_ http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut {
					put.Add(1)
				}
			})
			to := t.TempDir()
			exported, err := export.Run(t.Context(), export.Options{
				Files: mounted(t, map[string]string{"results.csv": "point\n"}), To: to, Timeout: time.Minute,
				S3: export.S3{Endpoint: endpoint, Bucket: test.bucket, Prefix: "lab", Region: "us-east-1", Credentials: keys(t, test.access, test.secret)},
			})
			g.Expect(err).To(MatchError(And(
				ContainSubstring("can't put s3://%s/lab/results.csv at %s", test.bucket, endpoint), ContainSubstring(test.says),
				Not(ContainSubstring(test.secret)))))
			g.Expect(put.Load()).To(Equal(int32(1)))
			g.Expect(exported).To(Equal([]string{filepath.Join(to, "results.csv")}), "the directory has them all the same")
		})
	}
}

func TestAStoreThatNeverAnswersEndsWithTheTimeout(t *testing.T) {
	g := NewWithT(t)
	released := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(released)
	_, err := export.Run(t.Context(), export.Options{
		Files: mounted(t, map[string]string{"results.csv": "point\n"}), Timeout: 100 * time.Millisecond,
		S3: export.S3{Endpoint: server.URL, Bucket: "bench", Region: "x", Credentials: keys(t, "lab", "hush")},
	})
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	g.Expect(err).To(MatchError(ContainSubstring("it took too long")))
}

func TestExportRefuses(t *testing.T) {
	good := mounted(t, map[string]string{"results.csv": "point\n"})
	credentials := keys(t, "lab", "hush")
	for name, test := range map[string]struct {
		options export.Options
		says    string
	}{
		"no files":    {export.Options{To: "x"}, "--files is missing"},
		"no place":    {export.Options{Files: good}, "there is nowhere to export to: give --to, or --s3-endpoint"},
		"no bucket":   {export.Options{Files: good, S3: export.S3{Endpoint: "http://s3", Credentials: credentials}}, "--s3-bucket is missing"},
		"no endpoint": {export.Options{Files: good, S3: export.S3{Bucket: "bench", Credentials: credentials}}, "--s3-endpoint is missing"},
		"an endpoint that is no URL": {export.Options{Files: good, S3: export.S3{Endpoint: "s3.example.org", Bucket: "bench", Credentials: credentials}},
			`--s3-endpoint: "s3.example.org" is no URL of a host`},
		"a directory that is not there": {export.Options{Files: "/nowhere", To: t.TempDir()}, "can't read the results: open /nowhere"},
		"an empty directory":            {export.Options{Files: mounted(t, nil), To: t.TempDir()}, "there is nothing to export"},
		"what is no gzip":               {export.Options{Files: mounted(t, map[string]string{"a.gz": "plain text of some length"}), To: t.TempDir()}, "a.gz: gzip: invalid header"},
		"a gzip that is cut off": {export.Options{Files: mounted(t, map[string]string{"a.gz": zipped(t, "some text")[:20]}), To: t.TempDir()},
			"a.gz: unexpected EOF"},
		"two files of one name": {export.Options{Files: mounted(t, map[string]string{"a": "plain", "a.gz": zipped(t, "x")}), To: t.TempDir()},
			"a and a.gz would both be exported as a"},
		"a place that is a file": {export.Options{Files: good, To: filepath.Join(good, "results.csv")}, "there is something that is not a directory"},
		"credentials without a secret key": {export.Options{Files: good, S3: export.S3{Endpoint: "http://s3", Bucket: "bench",
			Credentials: mounted(t, map[string]string{"accessKey": "lab"})}}, "the Secret of the object store has no key secretKey; it needs accessKey and secretKey"},
		"an empty access key": {export.Options{Files: good, S3: export.S3{Endpoint: "http://s3", Bucket: "bench", Credentials: keys(t, "\n", "hush")}},
			"the key accessKey in the Secret of the object store is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Timeout = time.Minute
			_, err := export.Run(t.Context(), test.options)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.says)))
		})
	}
}
