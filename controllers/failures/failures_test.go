package failures

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parallelfs.dev/operator/api/v1alpha1"
)

// told are the events that were made.
func told(recorder *events.FakeRecorder) (out []string) {
	for {
		select {
		case text := <-recorder.Events:
			out = append(out, text)
		default:
			return out
		}
	}
}

func TestAFailureEmitsAnEventWhenItsMessageChanges(t *testing.T) {
	g := NewWithT(t)
	recorder := events.NewFakeRecorder(8)
	fs := &v1alpha1.FileSystem{}
	is := func(message string) *metav1.Condition {
		return &metav1.Condition{Type: v1alpha1.ConditionReconciled, Reason: v1alpha1.ReasonPassFailed, Message: message}
	}
	Announce(recorder, fs, nil, nil)
	Announce(recorder, fs, is("no disk"), nil)
	Announce(recorder, fs, is("no disk"), is("no disk"))
	g.Expect(told(recorder)).To(BeEmpty())
	Announce(recorder, fs, nil, is("no disk"))
	Announce(recorder, fs, is("no disk"), is("no node"))
	g.Expect(told(recorder)).To(Equal([]string{"Warning PassFailed no disk", "Warning PassFailed no node"}))
	Announce(recorder, fs, nil, is(strings.Repeat("x", 5000)))
	g.Expect(told(recorder)).To(ConsistOf(HaveLen(len("Warning PassFailed ")+1000)), "the API server takes no longer note")
}

func TestAFailureIsRetriedWithinAMinute(t *testing.T) {
	g := NewWithT(t)
	limiter, request := Limiter(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "scratch"}}
	g.Expect(limiter.When(request)).To(Equal(200 * time.Millisecond))
	g.Expect(limiter.When(request)).To(Equal(400 * time.Millisecond))
	for range 100 {
		g.Expect(limiter.When(request)).To(BeNumerically("<=", time.Minute))
	}
	g.Expect(limiter.When(request)).To(Equal(time.Minute))
	limiter.Forget(request)
	g.Expect(limiter.When(request)).To(Equal(200*time.Millisecond), "a pass that did not fail begins anew")
}

func TestAFailureOfAnObjectWithSeveralAuthorsIsReportedOnceUntilItIsOver(t *testing.T) {
	g := NewWithT(t)
	recorder, teller := events.NewFakeRecorder(8), &Teller{}
	target := &v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "ssd-1", UID: "1"}}
	key := client.ObjectKeyFromObject(target)
	tell := func(err error) { teller.Tell(recorder, key, target, err) }
	tell(errors.New("no node"))
	tell(errors.New("no node"))
	g.Expect(told(recorder)).To(Equal([]string{"Warning PassFailed no node"}))
	tell(errors.New("no agent"))
	g.Expect(told(recorder)).To(Equal([]string{"Warning PassFailed no agent"}))
	tell(nil)
	tell(errors.New("no agent"))
	g.Expect(told(recorder)).To(Equal([]string{"Warning PassFailed no agent"}), "it was over in between")

	tell(fmt.Errorf("write: %w", apierrors.NewConflict(schema.GroupResource{}, "ssd-1", errors.New("it has changed"))))
	tell(fmt.Errorf("write: %w", context.Canceled))
	teller.Tell(recorder, key, &v1alpha1.StorageTarget{}, errors.New("it can't be read"))
	g.Expect(told(recorder)).To(BeEmpty())
}
