package custom

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/client-go/util/jsonpath"
	"k8s.io/utils/lru"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

const (
	processes = benchmarks.ParameterProcesses
	clients   = benchmarks.ParameterClients
	// prefix is the name prefix of the parameters that the spec defines.
	prefix = "custom."
	// maxProcesses is the upper bound of the API.
	maxProcesses = 65536
)

// Parameters returns processes, clients, storagePool and the parameters in spec.custom: a Number if the value is a whole number, otherwise
// a Word. A program that is started once has no parameter clients.
func (Tool) Parameters(spec *v1alpha1.BenchmarkRunSpec) []benchmarks.Parameter {
	o := options(spec)
	out := benchmarks.Common(spec)
	if o.Launch == v1alpha1.CustomSingle {
		out = slices.DeleteFunc(out, func(p benchmarks.Parameter) bool { return p.Name == clients })
	}
	for _, p := range o.Parameters {
		out = append(out, parameter(p))
	}
	return out
}

func parameter(p v1alpha1.CustomParameter) benchmarks.Parameter {
	out := benchmarks.Parameter{Name: v1alpha1.SweepName(prefix + p.Name), Kind: benchmarks.Word, Value: string(p.Value)}
	if _, err := benchmarks.ParseNumber(out.Value); err == nil {
		out.Kind = benchmarks.Number
	}
	return out
}

// options returns spec.custom with the defaults of the API, which the API server also fills in.
func options(spec *v1alpha1.BenchmarkRunSpec) v1alpha1.CustomSpec {
	var o v1alpha1.CustomSpec
	if spec.Custom != nil {
		o = *spec.Custom
	}
	o.Launch = cmp.Or(o.Launch, v1alpha1.CustomSingle)
	o.Metrics = slices.Clone(o.Metrics)
	for i := range o.Metrics {
		o.Metrics[i].Combine = cmp.Or(o.Metrics[i].Combine, v1alpha1.CustomOnly)
	}
	return o
}

// metric is a compiled metric.
type metric struct {
	v1alpha1.CustomMetric
	regex *regexp.Regexp
	// states is the number of states of regex.
	states int
	path   []jsonpath.Node
}

// settings holds the checked parameters of a point.
type settings struct {
	launch    v1alpha1.CustomLaunch
	processes int64
	// clients is 0 if all available clients are used.
	clients int64
	// values replace $(name) in the command.
	values  map[string]string
	metrics []metric
}

// check parses the parameters of a point, and refuses metrics that can't match anything.
func check(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (settings, error) {
	o := options(spec)
	v := benchmarks.ValuesOf(point)
	s := settings{launch: o.Launch, processes: v.Number(processes, 1, maxProcesses), values: map[string]string{"directory": "$(DIRECTORY)"}}
	switch {
	case o.Launch == v1alpha1.CustomSingle:
		s.clients = 1
	case v.Has(clients):
		if s.clients = v.Number(clients, 1, maxProcesses); s.processes < s.clients {
			v.Refuse("%s: %d is less than %s (%d), so a client would have nothing to do", processes, s.processes, clients, s.clients)
		}
	}
	s.values[string(processes)] = fmt.Sprint(s.processes)
	if s.clients > 0 {
		s.values[string(clients)] = fmt.Sprint(s.clients)
	}
	for _, p := range o.Parameters {
		known := parameter(p)
		value := point.Parameters[known.Name]
		if _, err := benchmarks.ParseValue(known, value); err != nil {
			v.Refuse("%s: %v", known.Name, err)
		}
		if _, taken := s.values[p.Name]; taken || p.Name == string(clients) {
			v.Refuse("custom.parameters: %q is a name that $(%s) has already; take another", p.Name, p.Name)
		}
		s.values[p.Name] = value
	}
	for _, m := range o.Metrics {
		ready, err := compileOnce(m)
		if err != nil {
			v.Refuse("custom.metrics, %s: %v", m.Name, err)
		}
		if s.launch == v1alpha1.CustomPerProcess && s.processes > 1 && m.Combine == v1alpha1.CustomOnly {
			v.Refuse("custom.metrics, %s: combine Only would refuse the results of %d processes; take Sum, Mean, Max or Min", m.Name, s.processes)
		}
		s.metrics = append(s.metrics, ready)
	}
	if len(o.Metrics) == 0 {
		v.Refuse("custom.metrics: there is none, so nothing would be measured")
	}
	return s, v.Err()
}

// compiled caches the compiled metrics of recent runs: each metric is compiled once, and not for each point in each pass.
var compiled = lru.New(1024)

// compileOnce returns a metric from the cache, or compiles it.
func compileOnce(m v1alpha1.CustomMetric) (metric, error) {
	if known, is := compiled.Get(m); is {
		return known.(metric), nil //nolint:forcetypeassert // nothing else is added
	}
	out, err := compile(m)
	if err == nil {
		compiled.Add(m, out)
	}
	return out, err
}

// compile compiles the regular expression or the path of a metric.
func compile(m v1alpha1.CustomMetric) (metric, error) {
	out := metric{CustomMetric: m}
	switch {
	case (m.Regex == "") == (m.JSONPath == ""):
		return out, fmt.Errorf("set exactly one of regex and jsonPath")
	case m.Regex != "":
		expression, states, err := compileExpression(m.Regex)
		if err != nil {
			return out, err
		}
		if groups := expression.NumSubexp(); groups != 1 {
			return out, fmt.Errorf("its regex has %d groups instead of one, which holds the number; write (?:…) for the others", groups)
		}
		out.regex, out.states = expression, states
	default:
		path, err := parsePath(m.Name, m.JSONPath)
		if err != nil {
			return out, fmt.Errorf("its jsonPath can't be read: %w", err)
		}
		out.path = path
	}
	return out, nil
}
