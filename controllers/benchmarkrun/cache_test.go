//go:build envtest

package benchmarkrun

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	klabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/controllers/cached"
	"parallelfs.dev/operator/test/patience"
)

// behind returns an earlier state of ConfigMaps while the run has no job, like the cache of an operator that has just taken over.
type behind struct {
	client.Client
	jobs       func() []string
	configMaps []*corev1.ConfigMapList
}

func (b *behind) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := b.Client.List(ctx, list, options...); err != nil {
		return err
	}
	if configMaps, ok := list.(*corev1.ConfigMapList); ok {
		b.configMaps = append(b.configMaps, configMaps.DeepCopy())
		if len(b.jobs()) == 0 {
			b.configMaps[max(0, len(b.configMaps)-6)].DeepCopyInto(configMaps)
		}
	}
	return nil
}

func TestACacheThatIsBehindMakesNoRepetitionRunTwice(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	s.operator.Client = &behind{Client: s.operator.Client, jobs: s.jobs}
	key := s.makeRun("sweep")
	for looks := 0; looks < 300 && s.run(key).Status.CompletionTime == nil; looks++ {
		g.Expect(s.reconcile(key)).To(Succeed())
		s.play()
	}
	s.settle(key)
	run := s.run(key)
	g.Expect(succeeded(run).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded))
	g.Expect(value(run.Status.Points[0], "write")).To(Equal("1001.5 kB/s"))
	g.Expect(s.ran).To(Equal(once("sweep")))
	g.Expect(s.directories).To(BeEmpty())
	g.Expect(s.jobs()).To(BeEmpty())
}

func TestARecordIsWrittenOnce(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	run := s.run(s.makeRun("sweep"))
	// The two operators are independent: each has its own cache.
	fresh := func() *scope.Scope { return &scope.Scope{Run: run, Records: turns.Records{}} }
	first, err := s.operator.store(t.Context(), fresh(), turns.Record{Repetition: 1, Attempt: 1, Samples: []benchmarks.Sample{{Name: "write", Value: 1}}}, kept("first"))
	g.Expect(err).NotTo(HaveOccurred())
	again, err := s.operator.store(t.Context(), fresh(), turns.Record{Repetition: 1, Attempt: 1, Error: "its pod was gone"}, kept("again"))
	g.Expect(err).NotTo(HaveOccurred())
	first.Format = turns.RecordFormat // the stored record contains it
	g.Expect(again).To(Equal(first))
	var cm corev1.ConfigMap
	g.Expect(s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "sweep-p000"}, &cm)).To(Succeed())
	g.Expect(results.Unzip(cm.BinaryData["rep-1.txt.gz"])).To(BeEquivalentTo("first"))

	t.Run("and not into a ConfigMap of another owner", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(s.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "sweep-p001"}})).To(Succeed())
		_, err := s.operator.store(t.Context(), fresh(), turns.Record{Point: 1, Repetition: 1, Attempt: 1}, nil)
		g.Expect(err).To(MatchError("ConfigMap sweep-p001 exists and does not belong to BenchmarkRun sweep; delete or rename it"))
	})
}

func TestAManagerBringsARunToItsEnd(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	own := cache.ByObject{Label: klabels.SelectorFromSet(klabels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy})}
	mgr, err := ctrl.NewManager(server.Config, ctrl.Options{
		Scheme: server.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{s.namespace: {}},
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Pod{}: {Label: own.Label, Transform: cached.Pod}, &corev1.Node{}: {Transform: cached.Node},
				&corev1.ConfigMap{}: {Label: own.Label, Transform: cached.Own},
			},
			DefaultTransform: cached.Any,
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	s.operator.Clock = clock.RealClock{}
	g.Expect(cached.IndexAll(t.Context(), mgr.GetFieldIndexer(), true)).To(Succeed())
	g.Expect(s.operator.Setup(mgr)).To(Succeed())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		stop()
		g.Expect(<-ended).To(Succeed())
	}()

	key := s.makeRun("sweep", func(r *v1alpha1.BenchmarkRun) { r.Spec.Repetitions = 1 })
	g.Eventually(func() []string {
		s.play()
		if s.run(key).Status.CompletionTime == nil {
			return []string{"the run has not ended"}
		}
		return s.jobs()
	}).WithTimeout(patience.Bound(2 * time.Minute)).WithPolling(50 * time.Millisecond).Should(BeEmpty())
	g.Expect(succeeded(s.run(key)).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded))
	g.Expect(s.ran).To(HaveLen(4))
	g.Expect(s.ran).To(HaveEach(1))
	g.Expect(s.directories).To(BeEmpty())
}
