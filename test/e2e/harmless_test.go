//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// grace is how long a daemon may be away before the status has to say so: the operator is told of pods, and asks the filesystem every 3 s.
const grace = 10 * time.Second

// nothingIsLostWhile writes and syncs small files into a pool, each second asks MooseFS about its chunks, and looks at the status, as long
// as something is done to the filesystem. Then every file has to be there as it was written, no chunk may ever have been without a copy or
// beyond those of one server short of one, and the status may never have said Healthy while a chunkserver was away.
func (s *story) nothingIsLostWhile(pool string, do func()) {
	GinkgoHelper()
	master, writer := s.podOn("master", workers[0]), s.podOn("client", workers[1])
	chunkservers := len(s.chunkservers())
	s.kubectl("exec", writer, "-c", "client", "--", "sh", "-c", s.text(`
rm -rf /run/parallelfs/test-sums /run/parallelfs/test-failed /run/parallelfs/test-stop; mkdir -p `+s.mountPath+`/`+pool+`/written
while [ ! -e /run/parallelfs/test-stop ]; do
  i=$((i + 1)); file=`+s.mountPath+`/`+pool+`/written/$i
  head -c 65536 /dev/urandom > /run/parallelfs/test-block
  if dd if=/run/parallelfs/test-block of=$file conv=fsync status=none; then echo "$(sha256sum < /run/parallelfs/test-block | cut -d' ' -f1)  $file" >> /run/parallelfs/test-sums; else echo $file >> /run/parallelfs/test-failed; fi
  sleep 0.3
done >/dev/null 2>&1 &`))
	s.kubectl("exec", master, "-c", "master", "--", "sh", "-c", fmt.Sprintf(`
rm -rf /run/parallelfs/test-chunks /run/parallelfs/test-stop
while [ ! -e /run/parallelfs/test-stop ]; do mfscli -j -H 127.0.0.1 -P %d -SIC; echo; sleep 1; done > /run/parallelfs/test-chunks 2>/dev/null &`, s.port+2))
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
	func() {
		defer func() {
			close(done)
			<-ended
			s.kubectl("exec", writer, "-c", "client", "--", "touch", "/run/parallelfs/test-stop")
			s.kubectl("exec", master, "-c", "master", "--", "touch", "/run/parallelfs/test-stop")
		}()
		do()
	}()

	Expect(falseHealthy).To(BeEmpty())
	sums := s.kubectl("exec", writer, "-c", "client", "--", "cat", "/run/parallelfs/test-sums")
	Expect(s.kubectl("exec", writer, "-c", "client", "--", "sh", "-c", "cat /run/parallelfs/test-failed 2>/dev/null || true")).To(BeEmpty())
	files := strings.Count(sums, "\n")
	Expect(files).To(BeNumerically(">", 10))
	run(sums, "kubectl", "-n", s.namespace, "exec", "-i", s.podOn("client", workers[2]), "-c", "client", "--", "sha256sum", "--quiet", "-c", "-")

	most := s.mostChunksOfAServer(master)
	samples, endangered := 0, 0
	for line := range strings.SplitSeq(s.kubectl("exec", master, "-c", "master", "--", "cat", "/run/parallelfs/test-chunks"), "\n") {
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
		if json.Unmarshal([]byte(line), &answer) != nil {
			continue // the last one was cut off
		}
		samples++
		chunks := answer.Dataset.Info.Chunks.Summary.AllChunks
		Expect(chunks.Missing).To(BeZero(), "chunks without a copy")
		Expect(chunks.Endangered).To(BeNumerically("<=", most), "more chunks than those of one server have one copy left")
		endangered = max(endangered, chunks.Endangered)
	}
	Expect(samples).To(BeNumerically(">", 10))
	report("restarts under load", fmt.Sprintf("%d files written and synced, %d answers about chunks, at most %d of them endangered, none missing", files, samples, endangered))
}

func (s *story) chunkservers() []corev1.Pod {
	var list corev1.PodList
	if err := api.List(context.Background(), &list, client.InNamespace(s.namespace),
		client.MatchingLabels{v1alpha1.LabelFileSystem: "scratch", v1alpha1.LabelComponent: "chunkserver"}); err != nil {
		return nil
	}
	return list.Items
}

// healthyWithout says when the status calls a filesystem healthy of which a chunkserver has been away for a while. away is since when
// each of them is.
func (s *story) healthyWithout(wanted int, away map[string]time.Time) string {
	fs := &v1alpha1.FileSystem{}
	pods := s.chunkservers()
	if err := api.Get(context.Background(), client.ObjectKey{Namespace: s.namespace, Name: "scratch"}, fs); err != nil || pods == nil {
		return ""
	}
	now := map[string]bool{}
	ready := 0
	for _, p := range pods {
		isReady := false
		for _, c := range p.Status.Conditions {
			isReady = isReady || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
		if isReady {
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

// mostChunksOfAServer is the number of chunks of the chunkserver that has most of them.
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
