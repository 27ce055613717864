//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// grace is how long a daemon may be away before the status has to show it: the operator gets events of pods, and queries the filesystem
// every 3 s.
const grace = 10 * time.Second

// felt is how two programs on two clients were affected while something was done to a filesystem, and what MooseFS reported about its
// chunks meanwhile.
type felt struct {
	seconds int64
	// write and read are the longest durations of one operation.
	write, read time.Duration
	// operations counts all operations, errors those that failed, and bytes the bytes that differ from what was written.
	operations, errors, bytes int64
	// samples counts the answers of MooseFS. endangered is the largest number of chunks with one copy left, and short the number of answers
	// with any. missing is the largest number of chunks without a copy, and lost the number of answers with any.
	samples, endangered, short, missing, lost int
}

// String formats a row of a table.
func (f felt) String() string {
	return fmt.Sprintf("%4d s, %5d operations: longest write %6.2f s, longest read %6.2f s; %d errors, %d bytes differ; chunks: %d answers, at most %d endangered in %d of them, at most %d missing in %d",
		f.seconds, f.operations, f.write.Seconds(), f.read.Seconds(), f.errors, f.bytes, f.samples, f.endangered, f.short, f.missing, f.lost)
}

const (
	loadProgram, loadStop, loadOut = "/run/parallelfs/test-load", "/run/parallelfs/test-stop", "/run/parallelfs/test-report"
	chunkSamples                   = "/run/parallelfs/test-chunks"
)

// use runs programs on the clients of the last two workers in a pool as long as something is done to the filesystem.
func (s *story) use(pool string, do func()) felt {
	GinkgoHelper()
	return s.useOn(pool, workers[1], workers[2], do)
}

// useOn runs programs on the clients of two nodes that write, sync and read files of a pool as long as something is done to the filesystem,
// and queries MooseFS each second about its chunks.
func (s *story) useOn(pool, first, second string, do func()) felt {
	GinkgoHelper()
	program, err := os.ReadFile(filepath.Join(root, "bin", "load"))
	Expect(err).NotTo(HaveOccurred(), "test/e2e/run.sh builds it")
	users := []string{s.podOn("client", first), s.podOn("client", second)}
	directory := func(i int) string { return fmt.Sprintf("%s/%s/load-%d", s.mountPath, pool, i%len(users)) }
	for i, pod := range users {
		run(string(program), "kubectl", "-n", s.namespace, "exec", "-i", pod, "-c", "client", "--", "sh", "-c",
			"rm -f "+loadStop+" "+loadOut+"; cat > "+loadProgram+" && chmod 0755 "+loadProgram)
		s.kubectl("exec", pod, "-c", "client", "--", "sh", "-c",
			fmt.Sprintf("%s --stop %s %s %s > %s 2>&1 &", loadProgram, loadStop, directory(i), directory(i+1), loadOut))
	}
	// A client queries, because the master may restart. Its tools are those of the running version; 3.x has no JSON.
	host, port := s.management()
	ask := fmt.Sprintf("mfscli -n -j -H %s -P %s -SIC", host, port)
	if strings.HasPrefix(s.fileSystem().Status.Version, "3.") {
		ask = fmt.Sprintf("mfscli -n -s '|' -H %s -P %s -SIC | grep chunkclass | tr '\\n' ' '", host, port)
	}
	s.kubectl("exec", users[0], "-c", "client", "--", "sh", "-c",
		fmt.Sprintf("rm -f %[1]s; while [ ! -e %[2]s ]; do %[3]s; echo; sleep 1; done > %[1]s 2>/dev/null &", chunkSamples, loadStop, ask))
	func() {
		defer func() {
			for _, pod := range users {
				s.kubectl("exec", pod, "-c", "client", "--", "touch", loadStop)
			}
		}()
		do()
	}()
	var out felt
	for _, pod := range users {
		out.add(s.reportOf(pod))
	}
	out.count(s.kubectl("exec", users[0], "-c", "client", "--", "cat", chunkSamples))
	return out
}

// management returns where the master answers.
func (s *story) management() (host, port string) {
	GinkgoHelper()
	host, port, _ = strings.Cut(s.fileSystem().Status.Management.Address, ":")
	return host, port
}

// loadReport is the output of the program test/e2e/load at its end.
type loadReport struct {
	Seconds        int64
	Writes, Reads  struct{ Count, LongestMilliseconds, Errors int64 }
	DifferentBytes int64
}

func (s *story) reportOf(pod string) (report loadReport) {
	GinkgoHelper()
	Eventually(func() error {
		out, err := try("", "kubectl", "-n", s.namespace, "exec", pod, "-c", "client", "--", "cat", loadOut)
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}).Should(Succeed())
	return report
}

func (f *felt) add(r loadReport) {
	longest := func(have time.Duration, milliseconds int64) time.Duration {
		return max(have, time.Duration(milliseconds)*time.Millisecond)
	}
	f.seconds, f.write, f.read = max(f.seconds, r.Seconds), longest(f.write, r.Writes.LongestMilliseconds), longest(f.read, r.Reads.LongestMilliseconds)
	f.operations, f.errors, f.bytes = f.operations+r.Writes.Count+r.Reads.Count, f.errors+r.Writes.Errors+r.Reads.Errors, f.bytes+r.DifferentBytes
}

// chunkClasses matches the numbers of missing and endangered chunks in the output of mfscli of 3.x.
var chunkClasses = regexp.MustCompile(`chunkclass missing:\|(\d+) .*?chunkclass endangered:\|(\d+) `)

// count parses what MooseFS reported about its chunks, one answer on each line.
func (f *felt) count(samples string) {
	for line := range strings.SplitSeq(samples, "\n") {
		var answer struct {
			Dataset struct {
				Info struct {
					Chunks struct {
						Summary struct {
							AllChunks struct{ Missing, Endangered int }
						}
					}
				}
			}
		}
		chunks := &answer.Dataset.Info.Chunks.Summary.AllChunks
		if found := chunkClasses.FindStringSubmatch(line); found != nil {
			chunks.Missing, _ = strconv.Atoi(found[1])
			chunks.Endangered, _ = strconv.Atoi(found[2])
		} else if json.Unmarshal([]byte(line), &answer) != nil {
			continue // no master has answered, or the last answer was cut off
		}
		f.samples, f.endangered, f.missing = f.samples+1, max(f.endangered, chunks.Endangered), max(f.missing, chunks.Missing)
		if chunks.Endangered > 0 {
			f.short++
		}
		if chunks.Missing > 0 {
			f.lost++
		}
	}
}

// nothingIsLostWhile lets programs use a pool, and watches the status, as long as something is done to the filesystem. No operation may
// fail, and every byte must be as it was written. At no time may a chunk be without a copy, or may more chunks than those of one server
// lack a copy. The status must never be Healthy while a chunkserver is away. The disruption is a row of the table at the end.
func (s *story) nothingIsLostWhile(disruption, pool string, do func()) {
	GinkgoHelper()
	chunkservers := len(s.chunkservers())
	done, ended := make(chan struct{}), make(chan struct{})
	falseHealthy := ""
	go func() {
		defer close(ended)
		for away := map[string]time.Time{}; ; {
			select {
			case <-done:
				return
			case <-time.After(time.Second):
			}
			if said := s.healthyWithout(chunkservers, away); said != "" {
				falseHealthy = said
			}
		}
	}()
	out := s.use(pool, func() {
		defer func() {
			close(done)
			<-ended
		}()
		do()
	})
	wasFelt(disruption, out, false)
	Expect(falseHealthy).To(BeEmpty())
	Expect(out.endangered).To(BeNumerically("<=", s.mostChunksOfAServer(s.podOn("master", workers[0]))), "more chunks than those of one server have one copy left")
}

func (s *story) chunkservers() []corev1.Pod {
	var list corev1.PodList
	if err := api.List(context.Background(), &list, client.InNamespace(s.namespace),
		client.MatchingLabels{v1alpha1.LabelFileSystem: "scratch", v1alpha1.LabelComponent: "chunkserver"}); err != nil {
		return nil
	}
	return list.Items
}

// isReady reports whether a pod is Ready and is not being stopped.
func isReady(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// healthyWithout returns a sentence if the status calls a filesystem healthy although a chunkserver has been away for a while. away holds
// since when each of them is.
func (s *story) healthyWithout(wanted int, away map[string]time.Time) string {
	fs := &v1alpha1.FileSystem{}
	pods := s.chunkservers()
	if err := api.Get(context.Background(), client.ObjectKey{Namespace: s.namespace, Name: "scratch"}, fs); err != nil || pods == nil {
		return ""
	}
	now := map[string]bool{}
	ready := 0
	for _, p := range pods {
		if isReady(&p) {
			ready++
		} else {
			now[p.Name] = true
		}
	}
	if ready < wanted && len(now) == 0 {
		now["one that has no pod"] = true
	}
	for name := range away {
		if !now[name] {
			delete(away, name)
		}
	}
	said := ""
	condition := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionReady)
	for name := range now {
		if away[name].IsZero() {
			away[name] = time.Now()
		}
		if since := time.Since(away[name]); since > grace && condition != nil && condition.Reason == v1alpha1.ReasonHealthy {
			said = fmt.Sprintf("the status says %s: %s, and %s has been away for %s", condition.Reason, condition.Message, name, since)
		}
	}
	return said
}

// mostChunksOfAServer returns the number of chunks of the chunkserver that has most of them.
func (s *story) mostChunksOfAServer(master string) int {
	GinkgoHelper()
	out := s.kubectl("exec", master, "-c", "master", "--", "mfscli", "-j", "-H", "127.0.0.1", "-P", fmt.Sprint(s.port+2), "-SCS")
	var answer struct {
		Dataset struct {
			Chunkservers []struct {
				Chunks int `json:"hdd_regular_chunks"`
			}
		}
	}
	Expect(json.Unmarshal([]byte(out), &answer)).To(Succeed(), out)
	most := 0
	for _, c := range answer.Dataset.Chunkservers {
		most = max(most, c.Chunks)
	}
	Expect(most).To(BeNumerically(">", 0), out)
	return most
}
