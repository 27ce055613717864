package refusals

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var set = Fields{PriorityClass: "spec.pods.priorityClassName", Resources: "spec.pods.resources"}

func TestARefusalNamesTheCommandThatSolvesIt(t *testing.T) {
	for name, c := range map[string]struct{ message, words, mend string }{
		"Pod Security": {
			`Error creating: pods "scratch-master-x7k2p" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`,
			`violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`,
			"run kubectl label --overwrite namespace storage pod-security.kubernetes.io/enforce=privileged",
		},
		"a quota that is used up": {
			`Error creating: pods "a-1" is forbidden: exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0`,
			"exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0",
			"make room, or run kubectl -n storage edit resourcequota small",
		},
		"a quota on limits": {
			`Error creating: pods "a-1" is forbidden: failed quota: strict: must specify limits.cpu for: install; limits.memory for: install`,
			"failed quota: strict: must specify limits.cpu for: install; limits.memory for: install",
			"take limits.cpu out of the quota (kubectl -n storage edit resourcequota strict), give the namespace a LimitRange with defaults, or set spec.pods.resources",
		},
		"a reserved priority class": {
			`Error creating: insufficient quota to match these scopes: [{PriorityClass In [system-node-critical system-cluster-critical]}]`,
			"insufficient quota to match these scopes: [{PriorityClass In [system-node-critical system-cluster-critical]}]",
			"set spec.pods.priorityClassName to a class that namespace storage may use, or give the namespace a ResourceQuota for the priority class",
		},
		"a missing priority class": {
			`Error creating: pods "a-1" is forbidden: no PriorityClass with name fast was found`,
			"no PriorityClass with name fast was found", "set spec.pods.priorityClassName to one of kubectl get priorityclasses",
		},
		"a LimitRange": {
			`Error creating: pods "a-1" is forbidden: maximum cpu usage per Container is 2, but limit is 4`,
			"maximum cpu usage per Container is 2, but limit is 4",
			"look at kubectl -n storage describe limitrange; change it, or set spec.pods.resources",
		},
		"a LimitRange with nothing but a ratio": {
			`Error creating: pods "a-1" is forbidden: [cpu max limit to request ratio per Container is 2, but no request is specified or request is 0, ` +
				`cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0]`,
			"[cpu max limit to request ratio per Container is 2, but no request is specified or request is 0, " +
				"cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0]",
			"look at kubectl -n storage describe limitrange; change it, or set spec.pods.resources",
		},
		"a quota on the number of pods": {
			`Error creating: pods "a-1" is forbidden: exceeded quota: few, requested: count/pods=1,pods=1, used: count/pods=4,pods=4, limited: count/pods=4,pods=4`,
			"exceeded quota: few, requested: count/pods=1,pods=1, used: count/pods=4,pods=4, limited: count/pods=4,pods=4",
			"make room, or run kubectl -n storage edit resourcequota few",
		},
		"a webhook that does not answer": {
			`Error creating: Internal error occurred: failed calling webhook "validate.kyverno.svc-fail": no endpoints available`,
			`Internal error occurred: failed calling webhook "validate.kyverno.svc-fail": no endpoints available`,
			"mend what serves the webhook validate.kyverno.svc-fail, or exempt namespace storage from it " +
				"(kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations)",
		},
		"a webhook that refuses": {
			`Error creating: admission webhook "gatekeeper.sh" denied the request: no host network`,
			`admission webhook "gatekeeper.sh" denied the request: no host network`,
			"exempt namespace storage from the webhook gatekeeper.sh, or change its policy",
		},
		"OpenShift": {
			`Error creating: pods "a-" is forbidden: unable to validate against any security context constraint: [...]`,
			"unable to validate against any security context constraint: [...]",
			"run oc adm policy add-scc-to-user privileged -z default -n storage",
		},
		"a service account that is not there": {
			`Error creating: pods "a-" is forbidden: error looking up service account storage/default: serviceaccount "default" not found`,
			`error looking up service account storage/default: serviceaccount "default" not found`,
			"run kubectl -n storage create serviceaccount default",
		},
		"a worker of an MPIJob": {
			`worker pod created failed: pods "a-worker-0" is forbidden: violates PodSecurity "restricted:latest": hostPath volumes`,
			`violates PodSecurity "restricted:latest": hostPath volumes`,
			"run kubectl label --overwrite namespace storage pod-security.kubernetes.io/enforce=privileged",
		},
		"words that nobody has seen": {
			"Error creating: the moon is full", "the moon is full", "look at kubectl -n storage describe daemonset scratch-master",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(Words(c.message)).To(Equal(c.words))
			g.Expect(Mend(c.words, Owner{Kind: "DaemonSet", Namespace: "storage", Name: "scratch-master"}, set)).To(Equal(c.mend))
		})
	}
}

func TestTheAccountOfThePodsGetsTheRight(t *testing.T) {
	of := set
	of.Account = "parallelfs"
	NewWithT(t).Expect(Mend("unable to validate against any security context constraint: [...]", Owner{Namespace: "storage"}, of)).To(
		Equal("run oc adm policy add-scc-to-user privileged -z parallelfs -n storage"))
}

func TestTheNewestRefusalOfThisObjectCounts(t *testing.T) {
	g := NewWithT(t)
	made := time.Date(2026, 5, 1, 12, 0, 0, 5e8, time.UTC)
	event := func(seconds int, reason, message string) corev1.Event {
		return corev1.Event{
			Type: corev1.EventTypeWarning, Reason: reason, Message: message,
			LastTimestamp: metav1.NewTime(made.Truncate(time.Second).Add(time.Duration(seconds) * time.Second)),
		}
	}
	g.Expect(newest([]corev1.Event{
		event(9, "FailedCreate", "Error creating: newer"), event(3, "FailedCreate", "Error creating: older"),
		event(20, "FailedDaemonPod", "another thing"),
	}, made, refusesPod)).To(Equal("newer"))
	g.Expect(newest([]corev1.Event{event(0, "FailedCreate", "in the same second")}, made, refusesPod)).To(Equal("in the same second"))
	g.Expect(newest([]corev1.Event{event(-1, "FailedCreate", "of one of that name before")}, made, refusesPod)).To(BeEmpty())
	g.Expect(newest([]corev1.Event{event(2, "MPIJobFailed", "MPIJob storage/a is failed")}, made, refusesPod)).To(BeEmpty())
	g.Expect(newest([]corev1.Event{event(2, "MPIJobFailed", `worker pod created failed: pods "a" is forbidden: no`)}, made, refusesPod)).To(Equal("no"))
	normal := event(2, "FailedCreate", "no")
	normal.Type = corev1.EventTypeNormal
	g.Expect(newest([]corev1.Event{normal}, made, refusesPod)).To(BeEmpty())
}
