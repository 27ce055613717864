package main

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
)

// approvals returns the approved plans of all targets.
func approvals(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	var all v1alpha1.StorageTargetList
	NewWithT(t).Expect(c.List(t.Context(), &all)).To(Succeed())
	out := map[string]string{}
	for _, target := range all.Items {
		if target.Spec.ApprovedPlan != "" {
			out[target.Name] = target.Spec.ApprovedPlan
		}
	}
	return out
}

// replaceable is the StorageTarget of a lost disk of a buddy group for which a person has asked for another disk.
func replaceable(name string, message string) *v1alpha1.StorageTarget {
	t := diskOf(name, "oss2", is(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonTargetMissing, "no disk has this name"),
		is(v1alpha1.ConditionOnline, metav1.ConditionFalse, v1alpha1.ReasonNotServing, "the filesystem does not list it as online: "+message))
	t.Annotations = map[string]string{v1alpha1.AnnotationReplaceDisk: v1alpha1.ReplacePlan}
	return t
}

// otherApprovals returns a lost disk with a plan, one without, a disk of another owner, and one whose identity has changed.
func otherApprovals() []client.Object {
	taken := planned("taken", "oss5", hashOf("2"))
	taken.Status.FormerOwner = &v1alpha1.FormerTarget{Owner: v1alpha1.FormerOwner{Cluster: "c2", Namespace: "lab", FileSystem: "old", Node: "oss9"}, UUID: "u1"}
	taken.Status.Plan.Steps = []string{"take over, with all data on it, StorageTarget lab/old-1"}
	taken.Spec.TakeOverFrom, taken.Spec.FormatPolicy = taken.Status.FormerOwner.DeepCopy(), v1alpha1.FormatNever
	renamed := serving("renamed", "oss7")
	renamed.Status.NewDevice = &v1alpha1.NewDevice{Hash: hashOf("3"), Device: v1alpha1.DeviceIdentity{ID: "wwn-0xnew", Serial: "S-new", SizeBytes: 4e12}}
	return []client.Object{
		scratchOf(), taken, renamed,
		replaceable("lost", "disk scratch-spare can replace the lost one as target 4, and everything of target 1 is copied to it. "+
			"Approve: kubectl -n storage annotate --overwrite storagetarget lost parallelfs.dev/replace-disk="+hashOf("1")),
		replaceable("unplanned", "add an empty disk of node oss2 to pool ssd"),
	}
}

// annotated returns the value of an annotation of every target that has it.
func annotated(t *testing.T, c client.Client, annotation string) map[string]string {
	t.Helper()
	var all v1alpha1.StorageTargetList
	NewWithT(t).Expect(c.List(t.Context(), &all)).To(Succeed())
	out := map[string]string{}
	for _, target := range all.Items {
		if value := target.Annotations[annotation]; value != "" {
			out[target.Name] = value
		}
	}
	return out
}

func TestPlansOfLostTakenAndRenamedDisksAreShown(t *testing.T) {
	got := on(t, otherApprovals())("target", "plan", "scratch")
	NewWithT(t).Expect(got.code).To(Equal(exitGood), got.stderr)
	golden(t, "target-plan-others.txt", got.stdout)
}

func TestPlansOfLostTakenAndRenamedDisksAreApprovedByName(t *testing.T) {
	const plan = v1alpha1.ReplacePlan
	for name, one := range map[string]struct {
		args            []string
		answer          string
		code            int
		says            string
		lost, taken, id string
	}{
		"a lost disk":                       {[]string{"lost"}, "yes\n", 0, `Replace the disk of lost? Type "yes"`, hashOf("1"), "", ""},
		"a lost disk, and no":               {[]string{"lost"}, "no\n", 1, "LOSES    the lost disk", plan, "", ""},
		"a lost disk, dry run":              {[]string{"lost", "--dry-run"}, "", 0, "Nothing was changed", plan, "", ""},
		"a lost disk and --yes":             {[]string{"lost", "--yes"}, "", 1, "--plan " + hashOf("1"), plan, "", ""},
		"a lost disk and its hash":          {[]string{"lost", "--yes", "--plan", hashOf("1")}, "", 0, "everything of target 1", hashOf("1"), "", ""},
		"a lost disk and another hash":      {[]string{"lost", "--yes", "--plan", hashOf("9")}, "", 1, "Look at it again", plan, "", ""},
		"a lost disk without a plan":        {[]string{"unplanned"}, "yes\n", 1, "add an empty disk of node oss2", plan, "", ""},
		"a disk of another owner":           {[]string{"taken"}, "yes\n", 0, "Take over the disk of taken with its data?", plan, hashOf("2"), ""},
		"a disk of another owner and --yes": {[]string{"taken", "--yes"}, "", 1, "--plan " + hashOf("2"), plan, "", ""},
		"another identity":                  {[]string{"renamed"}, "yes\n", 0, "Is it the same disk of renamed, and not a copy?", plan, "", hashOf("3")},
		"all blank ones":                    {[]string{"--all-blank", "--yes"}, "", 1, "no plan of these disks waits", plan, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c, pfs := clusterThat(t, otherApprovals(), interceptor.Funcs{}, one.answer)
			got := pfs(append([]string{"target", "approve", "scratch"}, one.args...)...)
			g.Expect(got.code).To(Equal(one.code), got.stderr)
			g.Expect(got.stderr).To(ContainSubstring(one.says))
			g.Expect(annotated(t, c, v1alpha1.AnnotationReplaceDisk)).To(Equal(map[string]string{"lost": one.lost, "unplanned": plan}))
			g.Expect(annotated(t, c, v1alpha1.AnnotationAcceptDevice)["renamed"]).To(Equal(one.id))
			g.Expect(approvals(t, c)["taken"]).To(Equal(one.taken))
		})
	}
}

func TestThePlanOfAReplacementIsAskedForAndTakenBack(t *testing.T) {
	g := NewWithT(t)
	c, pfs := cluster(t, []client.Object{scratchOf(), serving("well", "oss2")})
	word := func() string { return annotated(t, c, v1alpha1.AnnotationReplaceDisk)["well"] }
	g.Expect(pfs("target", "replace", "scratch", "well", "--dry-run").code).To(Equal(exitGood))
	g.Expect(word()).To(BeEmpty())
	g.Expect(pfs("target", "replace", "scratch", "well").code).To(Equal(exitGood))
	g.Expect(word()).To(Equal(v1alpha1.ReplacePlan))
	g.Expect(pfs("target", "replace", "scratch", "well", "--withdraw").code).To(Equal(exitGood))
	g.Expect(word()).To(BeEmpty())
}

// waitingDisks returns two blank disks, one with data, one that is refused, and one of another FileSystem.
func waitingDisks() []client.Object {
	refused := planned("refused", "oss6", hashOf("d"))
	refused.Status.Plan.Refusals = []string{"sdb is mounted at /home"}
	refused.Status.Conditions[0].Reason, refused.Status.Conditions[0].Message = v1alpha1.ReasonDeviceRefused, "sdb is mounted at /home"
	other := planned("other", "oss6", hashOf("e"))
	other.Labels, other.Spec.FileSystem.Name = nil, "archive"
	return []client.Object{
		scratchOf(), planned("blank-1", "oss5", hashOf("a")), planned("blank-2", "oss6", hashOf("b")),
		planned("full", "oss6", hashOf("c"), "xfs on sdb1 (label home)", "gpt on sdb"), refused, other, serving("well", "oss7"),
	}
}

func TestPlansOfDisksShowWhatIsLostAndTheHash(t *testing.T) {
	g := NewWithT(t)
	c, pfs := cluster(t, waitingDisks())
	got := pfs("target", "plan", "scratch")
	g.Expect(got.code).To(Equal(exitGood), got.stderr)
	golden(t, "target-plan.txt", got.stdout)
	g.Expect(pfs("target", "plan", "scratch", "blank-1").stdout).NotTo(ContainSubstring("blank-2"))
	g.Expect(approvals(t, c)).To(BeEmpty())
}

func TestOnlyThePlansThatWereShownAreApproved(t *testing.T) {
	blank := map[string]string{"blank-1": hashOf("a"), "blank-2": hashOf("b")}
	for name, one := range map[string]struct {
		args   []string
		answer string
		code   int
		want   map[string]string
		says   string
	}{
		"all blank ones":                        {[]string{"--all-blank"}, "yes\n", 0, blank, "the disk is blank"},
		"all blank ones without a question":     {[]string{"--all-blank", "--yes"}, "", 0, blank, "the disk is blank"},
		"those of a node":                       {[]string{"-l", "parallelfs.dev/node=oss6"}, "yes\n", 0, map[string]string{"blank-2": hashOf("b")}, "blank-2"},
		"no answer":                             {[]string{"--all-blank"}, "", 1, nil, "not approved. Nothing was changed"},
		"another answer":                        {[]string{"--all-blank"}, "no\n", 1, nil, "not approved. Nothing was changed"},
		"a dry run":                             {[]string{"--all-blank", "--dry-run"}, "", 0, nil, "Nothing was changed"},
		"a disk with data":                      {[]string{"full"}, "destroy\n", 0, map[string]string{"full": hashOf("c")}, "LOSES    xfs on sdb1 (label home)"},
		"a disk with data, yes is not enough":   {[]string{"full"}, "yes\n", 1, nil, "is LOST"},
		"a disk with data and --yes":            {[]string{"full", "--yes"}, "", 1, nil, "name the plan that you have read: --plan " + hashOf("c")},
		"a disk with data, --yes and its hash":  {[]string{"full", "--yes", "--plan", hashOf("c")}, "", 0, map[string]string{"full": hashOf("c")}, "LOSES"},
		"a disk with data, --yes and one other": {[]string{"full", "--yes", "--plan", hashOf("b")}, "", 1, nil, "Look at it again. Nothing was changed"},
		"a disk that is refused":                {[]string{"refused", "--yes"}, "", 1, nil, "no plan of refused waits for an approval (DeviceRefused"},
		"one of several that is refused":        {[]string{"blank-1", "refused", "--yes"}, "", 1, nil, "Nothing was changed"},
		"a disk of another FileSystem":          {[]string{"other", "--yes"}, "", 1, nil, `has no StorageTarget "other"`},
		"a disk that serves":                    {[]string{"well", "--yes"}, "", 1, nil, "no plan of well waits"},
		"no disk":                               {nil, "yes\n", 2, nil, "name targets"},
		"names and all":                         {[]string{"blank-1", "--all-blank"}, "yes\n", 2, nil, "exclude each other"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c, pfs := clusterThat(t, waitingDisks(), interceptor.Funcs{}, one.answer)
			got := pfs(append([]string{"target", "approve", "scratch"}, one.args...)...)
			g.Expect(got.code).To(Equal(one.code), got.stderr)
			g.Expect(got.stderr).To(ContainSubstring(one.says))
			if one.want == nil {
				one.want = map[string]string{}
			}
			g.Expect(approvals(t, c)).To(Equal(one.want))
		})
	}
}

// changing replaces the plan of a target, or only a time, just before the first patch of it.
func changing(g Gomega, change func(*v1alpha1.StorageTarget)) interceptor.Funcs {
	done := false
	return interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if !done {
				done = true
				t := &v1alpha1.StorageTarget{}
				g.Expect(c.Get(ctx, client.ObjectKeyFromObject(object), t)).To(Succeed())
				change(t)
				g.Expect(c.Update(ctx, t)).To(Succeed())
				// The fake cluster does not check the version in a patch, as the API server does.
				return apierrors.NewConflict(schema.GroupResource{Resource: "storagetargets"}, t.Name, nil)
			}
			return c.Patch(ctx, object, patch, options...)
		},
	}
}

func TestAPlanThatChangesWhileAPersonReadsItIsNotApproved(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.StorageTarget){
		"another hash":   func(t *v1alpha1.StorageTarget) { t.Status.Plan.Hash = hashOf("f") },
		"more is lost":   func(t *v1alpha1.StorageTarget) { t.Status.Plan.Destroys = []string{"ext4 on sdb"} },
		"it is refused":  func(t *v1alpha1.StorageTarget) { t.Status.Plan.Refusals = []string{"sdb is mounted"} },
		"another policy": func(t *v1alpha1.StorageTarget) { t.Spec.FormatPolicy = v1alpha1.FormatNever },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c, pfs := clusterThat(t, waitingDisks(), changing(g, change), "")
			got := pfs("target", "approve", "scratch", "blank-1", "--yes")
			g.Expect(got.code).To(Equal(exitFailed))
			g.Expect(got.stderr).To(ContainSubstring("its plan has changed since it was shown, so it was not approved"))
			g.Expect(approvals(t, c)).To(BeEmpty())
		})
	}
	t.Run("only a time", func(t *testing.T) {
		g := NewWithT(t)
		c, pfs := clusterThat(t, waitingDisks(), changing(g, func(t *v1alpha1.StorageTarget) { t.Status.KernelName = "sdc" }), "")
		got := pfs("target", "approve", "scratch", "blank-1", "--yes")
		g.Expect(got.code).To(Equal(exitGood), got.stderr)
		g.Expect(approvals(t, c)).To(Equal(map[string]string{"blank-1": hashOf("a")}))
	})
}

func TestAnApprovalIsOfTheVersionThatWasRead(t *testing.T) {
	g := NewWithT(t)
	got := on(t, waitingDisks())("target", "approve", "scratch", "blank-1", "--dry-run")
	g.Expect(got.stdout).To(MatchRegexp(`^\{"metadata":\{"resourceVersion":"[0-9]+","uid":"uid-of-target"\},"spec":\{"approvedPlan":"sha256:a{64}"\}\}\n$`))
}

func TestADiskIsDrainedAndTheRequestIsWithdrawn(t *testing.T) {
	g := NewWithT(t)
	c, pfs := cluster(t, waitingDisks())
	spec := func() v1alpha1.StorageTargetSpec {
		var target v1alpha1.StorageTarget
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "storage", Name: "well"}, &target)).To(Succeed())
		return target.Spec
	}
	g.Expect(pfs("target", "remove", "scratch", "well", "--dry-run").code).To(Equal(exitGood))
	g.Expect(spec().Remove).To(BeFalse())
	g.Expect(pfs("target", "remove", "scratch", "well").code).To(Equal(exitGood))
	g.Expect(spec().Remove).To(BeTrue())
	g.Expect(spec().WritersStopped).To(BeFalse())
	g.Expect(pfs("target", "remove", "scratch", "well", "--writers-stopped").code).To(Equal(exitGood))
	g.Expect(spec().WritersStopped).To(BeTrue())
	g.Expect(pfs("target", "remove", "scratch", "well", "--withdraw").code).To(Equal(exitGood))
	g.Expect(spec().Remove || spec().WritersStopped).To(BeFalse())
	g.Expect(pfs("target", "remove", "scratch").code).To(Equal(exitUsage))
	g.Expect(pfs("target", "remove", "scratch", "other").stderr).To(ContainSubstring(`has no StorageTarget "other"`))
}

func TestTextOfDisksAndProgramsCannotCommandATerminal(t *testing.T) {
	g := NewWithT(t)
	got := on(t, []client.Object{scratchOf(), planned("blank-1", "oss5", hashOf("a"), "label \x1b[2Jhome")})("target", "plan", "scratch")
	g.Expect(got.stdout).To(ContainSubstring("label ?[2Jhome"))
	g.Expect(strings.Contains(got.stdout, "\x1b")).To(BeFalse())
}
