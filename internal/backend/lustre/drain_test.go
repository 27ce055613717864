package lustre_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre"
	"parallelfs.dev/operator/internal/node/spec"
)

// leaver holds what a drain of one OST observes, step by step.
type leaver struct {
	*WithT
	t    *testing.T
	in   backend.Input
	said map[string]*backend.State
	name string
	id   int32
}

// leaving is everything, running, with an OST of n1 that a person takes out.
func leaving(t *testing.T) *leaver {
	t.Helper()
	l := &leaver{WithT: NewWithT(t), t: t, in: running(t), said: saying(), name: "ost1-n1", id: 2}
	l.target().Spec.Remove = true
	l.configured()
	return l
}

// configured completes the Job of the pools, which leaves out the OSTs that leave.
func (l *leaver) configured() {
	l.t.Helper()
	for _, job := range l.wants() {
		if strings.Contains(job.Name, "configure") {
			l.in.Jobs = []backend.Job{{Name: job.Name, Component: "configure", Succeeded: true}}
		}
	}
}

func (l *leaver) target() *v1alpha1.StorageTarget {
	l.t.Helper()
	i := slices.IndexFunc(l.in.Targets, func(s v1alpha1.StorageTarget) bool { return s.Name == l.name })
	l.Expect(i).To(BeNumerically(">=", 0))
	return &l.in.Targets[i]
}

func (l *leaver) record() v1alpha1.MemberTarget {
	l.t.Helper()
	m := memberOfN1(l.in, "ost-ssd")
	i := slices.IndexFunc(m.Targets, func(s v1alpha1.MemberTarget) bool { return s.Name == l.name })
	l.Expect(i).To(BeNumerically(">=", 0))
	return m.Targets[i]
}

// links sets the links from these MDTs to the OST: each of them makes no objects, or has closed it.
func (l *leaver) links(closed bool, mdts ...int32) {
	l.t.Helper()
	l.said["n1"].Links = nil
	for _, mdt := range mdts {
		l.said["n1"].Links = append(l.said["n1"].Links, backend.Link{From: mdt, To: l.id, Closed: closed})
	}
	ask(l.t, &l.in, l.said)
}

// wants returns the Jobs that are to be made.
func (l *leaver) wants() []*batchv1.Job {
	l.t.Helper()
	objects, err := lustre.New().Members(l.in)
	l.Expect(err).NotTo(HaveOccurred())
	var out []*batchv1.Job
	for _, o := range objects {
		if job, is := o.(*batchv1.Job); is {
			out = append(out, job)
		}
	}
	return out
}

// keeps returns the names of all Jobs that stay.
func (l *leaver) keeps() []string {
	l.t.Helper()
	objects, err := lustre.New().Members(l.in)
	l.Expect(err).NotTo(HaveOccurred())
	var out []string
	for _, job := range l.in.Jobs {
		if slices.ContainsFunc(objects, func(o client.Object) bool { return o.GetName() == job.Name }) {
			out = append(out, job.Name)
		}
	}
	return out
}

// commands returns the commands of a Job, with its node first.
func (l *leaver) commands(job *batchv1.Job) []string {
	l.t.Helper()
	var told spec.Configure
	l.Expect(json.Unmarshal([]byte(job.Spec.Template.Annotations["parallelfs.dev/told"]), &told)).To(Succeed())
	terms := job.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	out := terms[0].MatchFields[0].Values
	for _, c := range told.Commands {
		out = append(out, strings.Join(c.Argv, " "))
	}
	return out
}

// ends completes a desired Job, long enough ago for clients.
func (l *leaver) ends(name string, ago time.Duration) {
	l.t.Helper()
	l.in.Jobs = append(l.in.Jobs, backend.Job{Name: name, Component: "drain", Succeeded: true, Ended: l.in.State.Asked.Add(-ago)})
}

func (l *leaver) seen() backend.TargetStatus {
	l.t.Helper()
	seen := lustre.New().Observe(l.in)
	i := slices.IndexFunc(seen.Targets, func(s backend.TargetStatus) bool { return s.StorageTarget == l.name })
	l.Expect(i).To(BeNumerically(">=", 0))
	return seen.Targets[i]
}

const find = `sh -c found=$({ lfs find "$0" --ost "$1" 2>&1 || echo failed; } | head -c 9); test "$found" != failed || exit 1; ` +
	`test -z "$found" || { echo "files have objects on OST $1: ` +
	`on a client, lfs find MOUNT --ost $1 names them" >&2; exit 1; } /var/lib/parallelfs/storage.scratch/admin/drain-2 1`

func TestAnOSTThatIsTakenOutIsEmptiedDeactivatedAndProvenEmpty(t *testing.T) {
	l := leaving(t)
	nobody := l.wants()
	l.Expect(nobody).To(HaveLen(2), "the MDTs of both nodes make objects still")
	for i, node := range []string{"n1", "n2"} {
		job := nobody[i]
		if l.commands(job)[0] != node {
			job = nobody[1-i]
		}
		l.Expect(l.commands(job)).To(Equal([]string{node, "lctl set_param osp.pfs-OST0001-osc-MDT*.max_create_count=0"}))
	}
	l.Expect(l.seen()).To(And(HaveField("Removing", false), HaveField("Online", true), HaveField("Message", ContainSubstring("n1, n2"))))

	l.links(false, 1, 2, 3)
	l.Expect(l.wants()).To(HaveLen(1), "the last MDT is n2's second")
	l.Expect(l.commands(l.wants()[0])[0]).To(Equal("n2"))

	l.links(false, 1, 2, 3, 4)
	moves := l.wants()
	l.Expect(moves).To(HaveExactElements(HaveField("Name", "scratch-drain-move-2")))
	l.Expect(l.commands(moves[0])).To(Equal([]string{
		"n3", `sh -c lfs find "$0" --ost "$1" -0 | lfs_migrate -y -0 /var/lib/parallelfs/storage.scratch/admin/drain-2 1`, find,
		"lctl pool_remove pfs.ssd pfs-OST0001", "lctl conf_param pfs-OST0001.osc.active=0",
	}), "and what is not proven empty is not deactivated")
	l.Expect(l.seen()).To(And(HaveField("Removing", true), HaveField("Removable", false)))

	l.in.Jobs = append(l.in.Jobs, backend.Job{Name: moves[0].Name, Component: "drain"})
	l.Expect(l.wants()).To(BeEmpty(), "it goes on")
	l.Expect(l.keeps()).To(ContainElement(moves[0].Name))
	l.in.Jobs = l.in.Jobs[:1]

	l.ends(moves[0].Name, time.Hour)
	l.Expect(l.wants()).To(BeEmpty(), "MDTs use it still, however long ago they were told")
	l.Expect(l.seen().Message).To(ContainSubstring("waiting until all MDTs have deactivated it"))
	l.links(true, 1, 2, 3, 4)
	l.in.Jobs[1].Ended = l.in.State.Asked.Add(-time.Minute)
	l.Expect(l.wants()).To(BeEmpty(), "clients follow later")
	l.Expect(l.seen().Message).To(ContainSubstring("looked at once more 5m0s later"))

	l.in.Jobs[1].Ended = l.in.State.Asked.Add(-6 * time.Minute)
	proves := l.wants()
	l.Expect(proves).To(HaveExactElements(HaveField("Name", "scratch-drain-prove-2")))
	l.Expect(l.commands(proves[0])).To(Equal([]string{"n3", find}))
	give(t, &l.in)
	l.Expect(l.record().Drained).To(BeNil(), "what was empty before is no proof")

	l.ends(proves[0].Name, 0)
	give(t, &l.in)
	l.Expect(l.record().Drained).To(HaveValue(Equal(metav1.NewTime(l.in.Jobs[2].Ended).Rfc3339Copy())))
	l.Expect(l.seen()).To(And(HaveField("Removing", true), HaveField("Removable", true), HaveField("Message", BeEmpty())))
	l.Expect(lustre.New().Observe(l.in).Problems).To(BeEmpty())
	l.Expect(l.keeps()).To(HaveLen(1), "the Jobs have done what they were for")

	// The OST is taken out: its node no longer serves it, and Lustre removes it.
	serves := slices.Clone(l.said["n1"].Targets)
	l.in.Targets = slices.DeleteFunc(l.in.Targets, func(s v1alpha1.StorageTarget) bool { return s.Name == l.name })
	give(t, &l.in)
	l.Expect(l.record().TakenOut).NotTo(BeNil())
	l.Expect(l.wants()).To(BeEmpty(), "it is mounted still")
	l.said["n1"].Targets = slices.DeleteFunc(serves, func(s backend.Target) bool { return s.Role == v1alpha1.RoleStorage && s.ID == 2 })
	ask(t, &l.in, l.said)
	l.Expect(l.wants()).To(HaveExactElements(HaveField("Name", "scratch-drain-forget-2")))
	l.Expect(l.commands(l.wants()[0])).To(Equal([]string{"n3", "lctl --device MGS del_ost --target pfs-OST0001"}))
	l.in.Jobs = append(l.in.Jobs, backend.Job{Name: "scratch-drain-forget-2", Component: "drain", Failed: true, Message: "was killed"})
	seen := lustre.New().Observe(l.in)
	l.Expect(seen.Repeat).To(ContainElement("scratch-drain-forget-2"), "the node may have been started anew meanwhile")
	l.Expect(seen.Problems).To(ConsistOf(HaveField("Message", ContainSubstring("job scratch-drain-forget-2 failed, and is made again: was killed"))))
	l.in.Jobs[len(l.in.Jobs)-1].Failed, l.in.Jobs[len(l.in.Jobs)-1].Succeeded = false, true
	l.Expect(lustre.New().Observe(l.in).Problems).To(BeEmpty())
	l.in.Jobs = l.in.Jobs[:len(l.in.Jobs)-1]
	l.in.Unanswered = map[string]string{"n1": "nobody listens"}
	l.Expect(l.wants()).To(BeEmpty(), "what a node does not say may be mounted")
	l.in.Unanswered = nil
	l.in.FileSystem.Spec.Version = "2.15.8"
	for _, job := range l.wants() {
		l.Expect(job.Name).NotTo(ContainSubstring("forget"), "2.15 has no command for it")
	}
}

func TestADrainWaitsForWhatItNeeds(t *testing.T) {
	for says, change := range map[string]func(l *leaver){
		"it goes on when these MDTs serve, because they make objects: mdt-1.n2": func(l *leaver) {
			l.said["n2"].Targets = slices.DeleteFunc(l.said["n2"].Targets, func(s backend.Target) bool { return s.Role == v1alpha1.RoleMetadata && s.ID == 4 })
		},
		"no other target of storage pool ssd stays and serves": func(l *leaver) {
			for i := range l.in.Targets {
				l.in.Targets[i].Spec.Remove = l.in.Targets[i].Spec.Role == v1alpha1.RoleStorage
			}
		},
	} {
		l := leaving(t)
		l.links(false, 1, 2, 3, 4)
		change(l)
		l.configured()
		ask(t, &l.in, l.said)
		l.Expect(l.wants()).To(BeEmpty(), says)
		l.Expect(l.seen().Message).To(ContainSubstring(says))
	}
	for says, change := range map[string]func(l *leaver, i int){
		"it is not mounted": func(l *leaver, i int) { l.said["n1"].Targets = slices.Delete(l.said["n1"].Targets, i, i+1) },
		"RECOVERING": func(l *leaver, i int) {
			l.said["n1"].Targets[i].Online, l.said["n1"].Targets[i].Status = false, "RECOVERING"
		},
	} {
		l := leaving(t)
		l.links(false, 1, 2, 3, 4)
		change(l, slices.IndexFunc(l.said["n1"].Targets, func(s backend.Target) bool { return s.Role == v1alpha1.RoleStorage && s.ID == 2 }))
		ask(t, &l.in, l.said)
		l.Expect(l.wants()).To(BeEmpty(), "its files are read from it")
		l.Expect(l.seen().Message).To(Equal(says))
	}
}

func TestADrainIsNotProvenWhileAnMDTIsUnknownOrUsesTheOSTAgain(t *testing.T) {
	for why, change := range map[string]func(l *leaver){
		"an MDT is unknown":     func(l *leaver) { delete(l.said, "n2") },
		"an MDT uses it again":  func(l *leaver) { l.said["n1"].Links = l.said["n1"].Links[:3] },
		"nobody knows anything": nil,
	} {
		l := leaving(t)
		l.links(true, 1, 2, 3, 4)
		l.ends("scratch-drain-move-2", time.Hour)
		l.ends("scratch-drain-prove-2", 0)
		if change == nil {
			l.in.State, l.in.StateError = nil, "nobody listens"
		} else {
			change(l)
			ask(t, &l.in, l.said)
		}
		give(t, &l.in)
		l.Expect(l.record().Drained).To(BeNil(), why)
		l.Expect(l.seen().Removable).To(BeFalse(), why)
		l.Expect(l.keeps()).To(ContainElements("scratch-drain-move-2", "scratch-drain-prove-2"), why)
	}
}

func TestAJobOfADrainThatFailedIsMadeAgain(t *testing.T) {
	l := leaving(t)
	l.links(false, 1, 2, 3, 4)
	l.in.Jobs = append(l.in.Jobs, backend.Job{Name: "scratch-drain-move-2", Component: "drain", Failed: true, Message: "no space"})
	l.Expect(lustre.New().Observe(l.in).Repeat).To(Equal([]string{"scratch-drain-move-2"}))
	l.Expect(l.seen().Message).To(Equal("job scratch-drain-move-2 failed, and is made again: no space"))
	l.Expect(l.seen()).To(And(HaveField("Removing", true), HaveField("Removable", false)))

	// A restarted MDT makes objects again.
	l = leaving(t)
	stop := l.wants()[0].Name
	l.in.Jobs = append(l.in.Jobs, backend.Job{Name: stop, Component: "drain", Succeeded: true})
	l.Expect(lustre.New().Observe(l.in).Repeat).To(Equal([]string{stop}))
}

func TestAnOSTThatStaysShowsHowToUseItAgain(t *testing.T) {
	l := leaving(t)
	l.links(true, 1, 2, 3, 4)
	l.ends("scratch-drain-move-2", time.Hour)
	l.ends("scratch-drain-prove-2", 0)
	give(t, &l.in)
	l.Expect(l.record().Drained).NotTo(BeNil())
	l.target().Spec.Remove = false
	give(t, &l.in)
	l.Expect(l.record().Drained).To(BeNil())
	l.Expect(l.seen()).To(And(HaveField("Removing", false), HaveField("Removable", false),
		HaveField("Message", ContainSubstring("lctl conf_param pfs-OST0001.osc.active=1 on node n3"))))
	for _, job := range l.wants() {
		l.Expect(job.Name).To(ContainSubstring("configure"), "it comes back to its pool")
		l.Expect(l.commands(job)).To(ContainElement("lctl pool_add pfs.ssd pfs-OST[0000-0003/1]"))
	}
}

func TestANodeThatHasLostItsLastOSTHasNoServerOfThePool(t *testing.T) {
	g := NewWithT(t)
	in := running(t)
	when := metav1.NewTime(noon)
	for i, m := range in.FileSystemNodes {
		for j := range m.Spec.Members {
			if m.Spec.Node == "n1" && m.Spec.Members[j].Role == v1alpha1.RoleStorage {
				for k := range m.Spec.Members[j].Targets {
					in.FileSystemNodes[i].Spec.Members[j].Targets[k].Drained = &when
				}
			}
		}
	}
	in.Targets = slices.DeleteFunc(in.Targets, func(s v1alpha1.StorageTarget) bool { return s.Spec.Role == v1alpha1.RoleStorage && s.Spec.Node == "n1" })
	in.FileSystem.Spec.StoragePools[0].NodeSelector = v1alpha1.NodeSelector{"other": ""}
	for i := range in.Nodes {
		if in.Nodes[i].Name == "n2" {
			in.Nodes[i].Labels["other"] = ""
		}
	}
	give(t, &in)
	g.Expect(memberOfN1(in, "ost-ssd")).To(HaveField("Retired", true))
	g.Expect(lustre.New().Observe(in).Servers).NotTo(ContainElement(HaveField("Name", "ost-ssd.n1")))
}

func TestNothingMovesAnMDTOrTheMGT(t *testing.T) {
	g := NewWithT(t)
	for _, role := range []v1alpha1.Role{v1alpha1.RoleMetadata, v1alpha1.RoleManagement} {
		target := &v1alpha1.StorageTarget{Spec: v1alpha1.StorageTargetSpec{Role: role, Remove: true}}
		g.Expect(lustre.New().Removal(&v1alpha1.FileSystem{}, target, nil).Never).NotTo(BeEmpty(), role)
	}
	l := leaving(t)
	l.target().Spec.Remove = false
	for i := range l.in.Targets {
		l.in.Targets[i].Spec.Remove = l.in.Targets[i].Spec.Role != v1alpha1.RoleStorage
	}
	l.configured()
	l.Expect(l.wants()).To(BeEmpty())
}
