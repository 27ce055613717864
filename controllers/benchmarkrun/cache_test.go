//go:build envtest

package benchmarkrun

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	klabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"parallelfs.dev/operator/api/v1alpha1"
)

// lagging answers for runs and ConfigMaps what was true at the question before, as a cache may.
type lagging struct {
	client.Client
	run        *v1alpha1.BenchmarkRun
	configMaps *corev1.ConfigMapList
}

func (l *lagging) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := l.Client.Get(ctx, key, object, options...); err != nil {
		return err
	}
	if run, ok := object.(*v1alpha1.BenchmarkRun); ok {
		fresh := run.DeepCopy()
		if l.run != nil {
			l.run.DeepCopyInto(run)
		}
		l.run = fresh
	}
	return nil
}

func (l *lagging) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := l.Client.List(ctx, list, options...); err != nil {
		return err
	}
	if configMaps, ok := list.(*corev1.ConfigMapList); ok {
		fresh := configMaps.DeepCopy()
		if l.configMaps == nil {
			l.configMaps = &corev1.ConfigMapList{}
		}
		l.configMaps.DeepCopyInto(configMaps)
		l.configMaps = fresh
	}
	return nil
}

func TestACacheThatLagsMakesNoRepetitionRunTwice(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	s.operator.Client = &lagging{Client: s.operator.Client}
	key := s.makeRun("sweep")
	for range 300 {
		// A write that follows from an old status is refused by the API server; the next look knows better.
		_ = s.reconcile(key)
		s.play()
		if s.run(key).Status.CompletionTime != nil && len(s.jobs()) == 0 {
			break
		}
	}
	run := s.run(key)
	g.Expect(succeeded(run).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded))
	g.Expect(value(run.Status.Points[0], "write")).To(Equal("1001.5 kB/s"))
	g.Expect(s.ran).To(Equal(once("sweep")))
	g.Expect(s.directories).To(BeEmpty())
	g.Expect(s.jobs()).To(BeEmpty())
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
				&corev1.Pod{}: own, &corev1.ConfigMap{}: {Label: own.Label, Transform: WithoutRawOutput},
			},
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	s.operator.Clock = clock.RealClock{}
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
	}).WithTimeout(2 * time.Minute).WithPolling(50 * time.Millisecond).Should(BeEmpty())
	g.Expect(succeeded(s.run(key)).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded))
	g.Expect(s.ran).To(HaveLen(3))
	g.Expect(s.ran).To(HaveEach(1))
	g.Expect(s.directories).To(BeEmpty())
}
