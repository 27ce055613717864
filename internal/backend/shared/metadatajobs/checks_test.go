package metadatajobs_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/node/spec"
)

var checkedAt = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// asked returns a filesystem that supports checks, with an annotation that requests one.
func asked(word string) metadatajobs.CheckView {
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage", UID: "6f1c"}}
	if word != "" {
		fs.Annotations = map[string]string{v1alpha1.AnnotationCheck: word}
	}
	return metadatajobs.CheckView{FileSystem: fs, Can: true, Serves: true, Now: checkedAt}
}

// recorded returns the view after the API server has stored a decision.
func recorded(v metadatajobs.CheckView, d metadatajobs.CheckDecision) metadatajobs.CheckView {
	v.Recorded, v.Now = d.Check, v.Now.Add(10*time.Second)
	return v
}

// started returns a recorded check, with its Job.
func started(word string) (v metadatajobs.CheckView, job string) {
	v = asked(word)
	v = recorded(v, metadatajobs.DecideCheck(v))
	job = metadatajobs.DecideCheck(v).Start
	v.Jobs = []metadatajobs.CheckJobFacts{{Name: job}}
	return v, job
}

func TestACheckIsOnRecordBeforeItsJobIsMade(t *testing.T) {
	g := NewWithT(t)
	g.Expect(metadatajobs.DecideCheck(asked(""))).To(Equal(metadatajobs.CheckDecision{}), "nobody has asked")

	v := asked("before the upgrade")
	d := metadatajobs.DecideCheck(v)
	g.Expect(d.Start).To(BeEmpty())
	g.Expect(d.Check).To(PointTo(And(HaveField("Request", "before the upgrade"), HaveField("Result", v1alpha1.CheckRunning),
		HaveField("Started.Time", checkedAt), HaveField("Ended", BeNil()))))

	v = recorded(v, d)
	v.Serves = false
	d = metadatajobs.DecideCheck(v)
	g.Expect(d.Start).To(BeEmpty())
	g.Expect(d.Check.Message).To(Equal("it begins when the filesystem answers"))

	v.Serves = true
	first := metadatajobs.DecideCheck(v).Start
	g.Expect(first).To(HavePrefix("scratch-check-"))
	v.Now = v.Now.Add(time.Hour)
	g.Expect(metadatajobs.DecideCheck(v).Start).To(Equal(first), "an operator that is killed makes the same one")
}

func TestTheResultOfAJobIsRecordedBeforeTheJobIsRemoved(t *testing.T) {
	for sentence, c := range map[string]struct {
		job     metadatajobs.CheckJobFacts
		result  v1alpha1.CheckResult
		finds   []v1alpha1.CheckFinding
		message string
	}{
		"one that goes on":     {metadatajobs.CheckJobFacts{}, v1alpha1.CheckRunning, nil, "looks"},
		"one that waits":       {metadatajobs.CheckJobFacts{Message: "no image"}, v1alpha1.CheckRunning, nil, "no image"},
		"one without answer":   {metadatajobs.CheckJobFacts{Ended: true}, v1alpha1.CheckFailed, nil, "left no answer"},
		"one that was evicted": {metadatajobs.CheckJobFacts{Ended: true, Message: "evicted"}, v1alpha1.CheckFailed, nil, "evicted"},
		"one that could not look at all": {
			metadatajobs.CheckJobFacts{Ended: true, Answer: &spec.CheckAnswer{Findings: []spec.CheckFinding{{What: "x", Count: 1}}}, Message: "a server is away"},
			v1alpha1.CheckFailed, nil, "a server is away",
		},
		"one that found nothing": {
			metadatajobs.CheckJobFacts{Ended: true, Answer: &spec.CheckAnswer{Done: true, Message: "all was looked at"}}, v1alpha1.CheckClean, nil, "all was looked at",
		},
		"one that found something": {
			metadatajobs.CheckJobFacts{Ended: true, Answer: &spec.CheckAnswer{Done: true, Message: "repair it", Findings: []spec.CheckFinding{
				{What: "b", Count: 2}, {What: "a", Count: 2}, {What: "c", Count: 7}, {What: "none", Count: 0}, {What: "b", Count: 1},
			}}}, v1alpha1.CheckDamaged, []v1alpha1.CheckFinding{{What: "c", Count: 7}, {What: "b", Count: 3}, {What: "a", Count: 2}}, "repair it",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			g := NewWithT(t)
			v, name := started("now")
			c.job.Name = name
			v.Jobs = []metadatajobs.CheckJobFacts{c.job}
			d := metadatajobs.DecideCheck(v)
			g.Expect(d.Start).To(BeEmpty())
			g.Expect(d.Remove).To(BeEmpty(), "it alone knows what it found")
			g.Expect(d.Check).To(PointTo(And(HaveField("Result", c.result), HaveField("Findings", c.finds), HaveField("Message", ContainSubstring(c.message)))))
			g.Expect(d.Check.Ended == nil).To(Equal(c.result == v1alpha1.CheckRunning))
			if d.Check.Ended != nil {
				d = metadatajobs.DecideCheck(recorded(v, d))
				g.Expect(d.Remove).To(HaveExactElements(name))
				g.Expect(d.Check.Result).To(Equal(c.result), "it stays")
				g.Expect(d.Start).To(BeEmpty(), "once is enough")
			}
		})
	}
}

func TestANewValueRequestsAnotherCheck(t *testing.T) {
	g := NewWithT(t)
	v, job := started("monday")
	v.FileSystem.Annotations[v1alpha1.AnnotationCheck] = "tuesday"
	d := metadatajobs.DecideCheck(v)
	g.Expect(d.Remove).To(HaveExactElements(job))
	g.Expect(d.Check).To(PointTo(And(HaveField("Request", "tuesday"), HaveField("Result", v1alpha1.CheckRunning))))
	v = recorded(v, d)
	g.Expect(metadatajobs.DecideCheck(v).Start).NotTo(BeElementOf("", job))
}

func TestACheckThatIsNoLongerRequestedEnds(t *testing.T) {
	g := NewWithT(t)
	v, job := started("now")
	delete(v.FileSystem.Annotations, v1alpha1.AnnotationCheck)
	d := metadatajobs.DecideCheck(v)
	g.Expect(d.Remove).To(HaveExactElements(job))
	g.Expect(d.Check).To(PointTo(And(HaveField("Result", v1alpha1.CheckFailed), HaveField("Message", ContainSubstring("was removed before")))))
	g.Expect(metadatajobs.DecideCheck(recorded(v, d)).Check).To(Equal(d.Check), "what came of it stays")
}

func TestACheckWithoutToolsIsRefused(t *testing.T) {
	g := NewWithT(t)
	v := asked("now")
	v.Can = false
	g.Expect(metadatajobs.DecideCheck(v).Check).To(PointTo(And(HaveField("Result", v1alpha1.CheckFailed), HaveField("Message", ContainSubstring("no tool")))))
}

func TestAStatusOfACheckKeepsItsBounds(t *testing.T) {
	g := NewWithT(t)
	v, name := started(strings.Repeat("long ", 100))
	var many []spec.CheckFinding
	for i := range 100 {
		many = append(many, spec.CheckFinding{What: strings.Repeat("x", i+100), Count: int64(i + 1)})
	}
	v.Jobs = []metadatajobs.CheckJobFacts{{Name: name, Ended: true, Answer: &spec.CheckAnswer{Done: true, Findings: many, Message: strings.Repeat("y", 5000)}}}
	d := metadatajobs.DecideCheck(v)
	g.Expect(len(d.Check.Request)).To(BeNumerically("<=", 64))
	g.Expect(len(d.Check.Message)).To(BeNumerically("<=", 1024))
	g.Expect(len(d.Check.Findings)).To(BeNumerically("<=", 32))
	for _, f := range d.Check.Findings {
		g.Expect(len(f.What)).To(BeNumerically("<=", 128))
	}
}

func TestTheAnswerOfACheckIsTheLastLineThatIsOne(t *testing.T) {
	g := NewWithT(t)
	g.Expect(metadatajobs.ReadCheckAnswer("noise\n{\"done\":true,\"findings\":[{\"what\":\"a\",\"count\":2}]}\n")).To(
		PointTo(Equal(spec.CheckAnswer{Done: true, Findings: []spec.CheckFinding{{What: "a", Count: 2}}})))
	g.Expect(metadatajobs.ReadCheckAnswer(`{"done":false,"message":"a server is away"}`)).To(PointTo(HaveField("Message", "a server is away")))
	for _, none := range []string{"", "{}", "killed", `{"name":"x"}`} {
		g.Expect(metadatajobs.ReadCheckAnswer(none)).To(BeNil(), none)
	}
}
