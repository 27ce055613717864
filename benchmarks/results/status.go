package results

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// FromStatus returns the part of a run's document that is in its status: no attempts, numbers with six digits, only the varied parameters,
// no baseline figures, and the command line of a point as one string. It is for a run whose complete results are lost or do not exist yet.
func FromStatus(run *v1alpha1.BenchmarkRun) Run {
	out := Run{
		Format: Format, Name: run.Name, Namespace: run.Namespace, UID: string(run.UID), Spec: run.Spec,
		Started: when(run.Status.StartTime), Ended: when(run.Status.CompletionTime),
	}
	if run.Status.Provenance != nil {
		out.Provenance.RunProvenance = *run.Status.Provenance
	}
	for _, p := range run.Status.Points {
		point := Point{Index: int(p.Index), State: p.State, Message: p.Message, Placement: p.Placement}
		if p.Command != "" {
			point.Command = []string{p.Command}
		}
		for _, v := range p.Parameters {
			point.Parameters = append(point.Parameters, Value{Name: v.Name, Value: string(v.Value)})
		}
		for _, m := range p.Metrics {
			if metric, is := fromResult(m); is {
				metric.Better = declared(&run.Spec, m)
				point.Metrics = append(point.Metrics, metric)
			}
		}
		out.Points = append(out.Points, point)
	}
	return out
}

// declared returns the direction of a metric in the spec, or empty if it has none.
func declared(spec *v1alpha1.BenchmarkRunSpec, m v1alpha1.MetricResult) v1alpha1.Better {
	if spec.Custom != nil {
		for _, c := range spec.Custom.Metrics {
			if c.Name == m.Name && c.Unit == m.Unit {
				return c.Better
			}
		}
	}
	return ""
}

func when(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// fromResult parses the numbers of a status; false if the value is not a number. Rounded numbers in a status count as the value.
func fromResult(m v1alpha1.MetricResult) (Metric, bool) {
	value := number(m.Value)
	if value == nil {
		return Metric{}, false
	}
	or := func(text string) float64 {
		if n := number(text); n != nil {
			return *n
		}
		return *value
	}
	out := Metric{
		Name: m.Name, Unit: m.Unit, Value: *value, Mean: or(m.Mean), Min: or(m.Min), Max: or(m.Max),
		Median: number(m.Median), StdDev: number(m.StdDev), Confidence: number(m.Confidence), Outliers: m.Outliers, Samples: int(m.Samples),
		Speedup: number(m.Speedup), Efficiency: number(m.Efficiency),
	}
	if out.Efficiency != nil {
		*out.Efficiency /= 100 // the status contains percent
	}
	return out, true
}

// number parses a number of the status, or returns nil if there is none.
func number(text string) *float64 {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil
	}
	return &value
}
