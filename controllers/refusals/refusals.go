// Package refusals finds the API server's message for the refusal of an object's pods, and names the command that resolves it. No status
// contains the message: the controllers in Kubernetes that create pods write an event for the object.
package refusals

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// +kubebuilder:rbac:groups="",resources=events,verbs=list

const (
	// Patience is how long pods may be missing before the events of their owner are read.
	Patience = 5 * time.Second
	// mostWords bounds the quotation of the API server's message, in bytes.
	mostWords = 400
	// failedCreate is the event reason of controllers in Kubernetes. mpiFailed is that of the MPI operator, whose message for pods contains
	// madeFailed.
	failedCreate, mpiFailed, madeFailed = "FailedCreate", "MPIJobFailed", "pod created failed"
)

// Owner is an object whose controller creates pods.
type Owner struct {
	Kind, Namespace, Name string
	// Since is the start of the relevant events: the creation time of the object or of its newest pod.
	Since time.Time
}

// Of returns the message of the newest refusal of an object's pods, or an empty text if there is none. The reader must read directly from
// the API server, because a cache would hold all events of the cluster.
func Of(ctx context.Context, reader client.Reader, of Owner) (string, error) {
	var list corev1.EventList
	which := client.MatchingFields{"involvedObject.kind": of.Kind, "involvedObject.name": of.Name, "type": corev1.EventTypeWarning}
	if err := reader.List(ctx, &list, client.InNamespace(of.Namespace), which); err != nil {
		return "", fmt.Errorf("list the events of %s %s: %w", of.Kind, of.Name, err)
	}
	return newest(list.Items, of.Since, refusesPod), nil
}

// WarningOf returns the words of the newest warning about an object, empty when there is none.
func WarningOf(ctx context.Context, reader client.Reader, of Owner) (string, error) {
	var list corev1.EventList
	which := client.MatchingFields{"involvedObject.kind": of.Kind, "involvedObject.name": of.Name, "type": corev1.EventTypeWarning}
	if err := reader.List(ctx, &list, client.InNamespace(of.Namespace), which); err != nil {
		return "", fmt.Errorf("list the events of %s %s: %w", of.Kind, of.Name, err)
	}
	return newest(list.Items, of.Since, func(*corev1.Event) bool { return true }), nil
}

func refusesPod(e *corev1.Event) bool {
	return e.Reason == failedCreate || e.Reason == mpiFailed && strings.Contains(e.Message, madeFailed)
}

// newest returns the words of the newest warning that counts.
func newest(events []corev1.Event, since time.Time, counts func(e *corev1.Event) bool) string {
	var words string
	var last time.Time
	for i := range events {
		e := &events[i]
		at := lastSeen(e)
		// Times of events have whole seconds.
		if e.Type == corev1.EventTypeWarning && counts(e) && !at.Before(since.Truncate(time.Second)) && !at.Before(last) {
			last, words = at, Words(e.Message)
		}
	}
	return words
}

func lastSeen(e *corev1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return cmp.Or(e.EventTime.Time, e.CreationTimestamp.Time)
}

// frame matches the text that controllers put before the API server's message. It contains the name of the pod, which differs each time.
var frame = regexp.MustCompile(`^(Error creating: |(worker|launcher) pod created failed: )?([Pp]ods? "[^"]*" is (forbidden|invalid): )?`)

// Words extracts the API server's message from a controller's message, which contains a different pod name for each try.
func Words(message string) string {
	return v1alpha1.Cut(frame.ReplaceAllString(strings.TrimSpace(message), ""), mostWords)
}

// Fields names the settings of the pods: a field of a spec, or a value of the chart.
type Fields struct {
	PriorityClass, Resources string
	// Account is the ServiceAccount of the pods. Empty is default.
	Account string
}

// remedy is the advice for refusals that match words.
type remedy struct {
	words  *regexp.Regexp
	advice func(match []string, namespace string, set Fields) string
}

// remedies are tried in this order, from specific to general.
var remedies = []remedy{
	{regexp.MustCompile(`violates PodSecurity "([^"]*)"`), func(_ []string, namespace string, _ Fields) string {
		return "run kubectl label --overwrite namespace " + namespace + " pod-security.kubernetes.io/enforce=privileged"
	}},
	{regexp.MustCompile(`insufficient quota to match these scopes`), func(_ []string, namespace string, set Fields) string {
		return fmt.Sprintf("set %s to a class that namespace %s may use, or give the namespace a ResourceQuota for the priority class",
			set.PriorityClass, namespace)
	}},
	{regexp.MustCompile(`exceeded quota: ([^\s,]+)`), func(match []string, namespace string, _ Fields) string {
		return fmt.Sprintf("make room, or run kubectl -n %s edit resourcequota %s", namespace, match[1])
	}},
	{regexp.MustCompile(`failed quota: ([^\s:,]+): must specify ([a-z.,-]+)`), func(match []string, namespace string, set Fields) string {
		return fmt.Sprintf("take %s out of the quota (kubectl -n %s edit resourcequota %s), give the namespace a LimitRange with defaults, or set %s",
			strings.TrimRight(match[2], ".,"), namespace, match[1], set.Resources)
	}},
	{regexp.MustCompile(`(?i)priority ?class`), func(_ []string, _ string, set Fields) string {
		return fmt.Sprintf("set %s to one of kubectl get priorityclasses", set.PriorityClass)
	}},
	{regexp.MustCompile(`(?i)(maximum|minimum) [a-z-]+ usage per|ratio per`), func(_ []string, namespace string, set Fields) string {
		return fmt.Sprintf("look at kubectl -n %s describe limitrange; change it, or set %s", namespace, set.Resources)
	}},
	{regexp.MustCompile(`unable to validate against any security context constraint`), func(_ []string, namespace string, set Fields) string {
		return fmt.Sprintf("run oc adm policy add-scc-to-user privileged -z %s -n %s", cmp.Or(set.Account, "default"), namespace)
	}},
	{regexp.MustCompile(`failed calling webhook "([^"]*)"`), func(match []string, namespace string, _ Fields) string {
		return fmt.Sprintf("mend what serves the webhook %s, or exempt namespace %s from it "+
			"(kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations)", match[1], namespace)
	}},
	{regexp.MustCompile(`admission webhook "([^"]*)" denied`), func(match []string, namespace string, _ Fields) string {
		return fmt.Sprintf("exempt namespace %s from the webhook %s, or change its policy", namespace, match[1])
	}},
	{regexp.MustCompile(`ValidatingAdmissionPolicy '([^']*)'`), func(match []string, namespace string, _ Fields) string {
		return fmt.Sprintf("exempt namespace %s from the policy (kubectl edit validatingadmissionpolicy %s)", namespace, match[1])
	}},
	{regexp.MustCompile(`serviceaccount "?([a-z0-9.-]+)"? not found`), func(match []string, namespace string, _ Fields) string {
		return fmt.Sprintf("run kubectl -n %s create serviceaccount %s", namespace, match[1])
	}},
}

// Mend returns the advice for a message.
func Mend(words string, of Owner, set Fields) string {
	for _, r := range remedies {
		if match := r.words.FindStringSubmatch(words); match != nil {
			return r.advice(match, of.Namespace, set)
		}
	}
	return fmt.Sprintf("look at kubectl -n %s describe %s %s", of.Namespace, strings.ToLower(of.Kind), of.Name)
}

// Sentence describes the refusal of an object's pods: the number of other objects with the same reason, the advice, and the API server's
// message.
func Sentence(of Owner, more int, words string, set Fields) string {
	others := ""
	if more > 0 {
		others = fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("the pods of %s %s%s are refused: %s. The API server reported: %s", of.Kind, of.Name, others, Mend(words, of, set), words)
}
