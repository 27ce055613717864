package sweep_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/sweep"
)

// drill is a tool with one parameter of each kind and one that the spec may leave open.
type drill struct{ benchmarks.Tool }

func (drill) Name() v1alpha1.BenchmarkTool { return "drill" }

func (drill) Parameters(spec *v1alpha1.BenchmarkRunSpec) []benchmarks.Parameter {
	clients := ""
	if spec.Clients.Count > 0 {
		clients = fmt.Sprint(spec.Clients.Count)
	}
	return []benchmarks.Parameter{
		{Name: "processes", Kind: benchmarks.Count, Value: "1"},
		{Name: "clients", Kind: benchmarks.Count, Value: clients},
		{Name: "drill.depth", Kind: benchmarks.Size, Value: "64k"},
		{Name: "drill.length", Kind: benchmarks.Size, Value: "1g"},
	}
}

// dimension is one swept parameter, its values separated by spaces.
func dimension(name v1alpha1.SweepName, values string) v1alpha1.SweepDimension {
	return v1alpha1.SweepDimension{Name: name, Values: strings.Fields(values)}
}

// counting is a dimension with the values 1 to n.
func counting(name v1alpha1.SweepName, n int) v1alpha1.SweepDimension {
	d := v1alpha1.SweepDimension{Name: name}
	for i := range n {
		d.Values = append(d.Values, fmt.Sprint(i+1))
	}
	return d
}

// sizes is a dimension with the values 1k to nk.
func sizes(name v1alpha1.SweepName, n int) v1alpha1.SweepDimension {
	d := counting(name, n)
	for i := range d.Values {
		d.Values[i] += "k"
	}
	return d
}

func TestExpand(t *testing.T) {
	for name, test := range map[string]struct {
		spec v1alpha1.BenchmarkRunSpec
		// want has one line per point, of what varies.
		want []string
	}{
		"without a sweep there is one point, which varies nothing": {want: []string{""}},
		"the last name varies fastest": {
			spec: v1alpha1.BenchmarkRunSpec{Sweep: []v1alpha1.SweepDimension{dimension("drill.depth", "4k 8k"), dimension("processes", "1 2 4")}},
			want: []string{
				"drill.depth=4k processes=1", "drill.depth=4k processes=2", "drill.depth=4k processes=4",
				"drill.depth=8k processes=1", "drill.depth=8k processes=2", "drill.depth=8k processes=4",
			},
		},
		"values stay in the order and the spelling of the spec": {
			spec: v1alpha1.BenchmarkRunSpec{Sweep: []v1alpha1.SweepDimension{dimension("drill.depth", "2048k 1m 512")}},
			want: []string{"drill.depth=2048k", "drill.depth=1m", "drill.depth=512"},
		},
		"a derived value is computed for each point": {
			spec: v1alpha1.BenchmarkRunSpec{
				Sweep:  []v1alpha1.SweepDimension{dimension("clients", "1 2 8")},
				Derive: []v1alpha1.DerivedParameter{{Name: "processes", CEL: "4 * clients"}},
			},
			want: []string{"clients=1 processes=4", "clients=2 processes=8", "clients=8 processes=32"},
		},
		"sizes are bytes in an expression, and a derived size gets the largest unit that fits": {
			spec: v1alpha1.BenchmarkRunSpec{
				Sweep: []v1alpha1.SweepDimension{dimension("processes", "1 3 1024 2097152")},
				Derive: []v1alpha1.DerivedParameter{
					{Name: "drill.length", CEL: "processes * 1024"}, {Name: "drill.depth", CEL: "drill.length * 16"},
				},
			},
			want: []string{
				"processes=1 drill.length=1k drill.depth=16k", "processes=3 drill.length=3k drill.depth=48k",
				"processes=1024 drill.length=1m drill.depth=16m", "processes=2097152 drill.length=2g drill.depth=32g",
			},
		},
		"an expression uses the values of the spec for what is not swept": {
			spec: v1alpha1.BenchmarkRunSpec{Derive: []v1alpha1.DerivedParameter{{Name: "processes", CEL: "drill.length / drill.depth"}}},
			want: []string{"processes=16384"},
		},
		"an expression can choose": {
			spec: v1alpha1.BenchmarkRunSpec{
				Sweep:  []v1alpha1.SweepDimension{dimension("clients", "1 5")},
				Derive: []v1alpha1.DerivedParameter{{Name: "processes", CEL: "clients > 4 && clients % 2 == 1 ? 1 + clients : 2 * clients - 1"}},
			},
			want: []string{"clients=1 processes=1", "clients=5 processes=6"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			points, err := sweep.Expand(drill{}, &test.spec)
			g.Expect(err).NotTo(HaveOccurred())
			var got []string
			for i, p := range points {
				g.Expect(p.Index).To(Equal(i))
				var words []string
				for _, name := range p.Varied {
					words = append(words, fmt.Sprintf("%s=%s", name, p.Parameters[name]))
				}
				got = append(got, strings.Join(words, " "))
			}
			g.Expect(got).To(Equal(test.want))
		})
	}
}

func TestAPointHoldsAllValuesTheUnsweptOnesToo(t *testing.T) {
	g := NewWithT(t)
	spec := &v1alpha1.BenchmarkRunSpec{Sweep: []v1alpha1.SweepDimension{dimension("drill.depth", "4k")}}
	points, err := sweep.Expand(drill{}, spec)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(points).To(HaveLen(1))
	g.Expect(points[0].Parameters).To(Equal(map[v1alpha1.SweepName]string{"processes": "1", "drill.depth": "4k", "drill.length": "1g"}),
		"clients has no value in the spec, so it has none at the point")
	spec.Clients.Count = 3
	points, err = sweep.Expand(drill{}, spec)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(points[0].Parameters).To(HaveKeyWithValue(v1alpha1.SweepName("clients"), "3"))
}

func TestARunHasAsManyPointsAsItsStatusCanHold(t *testing.T) {
	g := NewWithT(t)
	spec := &v1alpha1.BenchmarkRunSpec{Sweep: []v1alpha1.SweepDimension{counting("processes", 16), counting("clients", 16)}}
	points, err := sweep.Expand(drill{}, spec)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(points).To(HaveLen(256))
	g.Expect(points[255].Parameters).To(And(HaveKeyWithValue(v1alpha1.SweepName("processes"), "16"), HaveKeyWithValue(v1alpha1.SweepName("clients"), "16")))
}

func TestExpandRefuses(t *testing.T) {
	derive := func(name v1alpha1.SweepName, cel string, more ...v1alpha1.DerivedParameter) v1alpha1.BenchmarkRunSpec {
		return v1alpha1.BenchmarkRunSpec{
			Sweep:  []v1alpha1.SweepDimension{dimension("drill.depth", "4k 8k")},
			Derive: append([]v1alpha1.DerivedParameter{{Name: name, CEL: cel}}, more...),
		}
	}
	swept := func(dimensions ...v1alpha1.SweepDimension) v1alpha1.BenchmarkRunSpec {
		return v1alpha1.BenchmarkRunSpec{Sweep: dimensions}
	}
	for name, test := range map[string]struct {
		spec v1alpha1.BenchmarkRunSpec
		says string
	}{
		"an unknown name, listing those that are known": {swept(dimension("processes", "1"), dimension("drill.speed", "1")),
			`spec.sweep[1].name: "drill.speed" is not a parameter of this run of drill; it has processes, clients, drill.depth, drill.length`},
		"an unknown derived name": {derive("drill.speed", "1"), `spec.derive[0].name: "drill.speed" is not a parameter of this run of drill; it has processes`},
		"a name that is swept twice": {swept(dimension("processes", "1"), dimension("processes", "2")),
			"spec.sweep[1].name: processes is swept already; name it once"},
		"a name that is derived twice": {derive("processes", "1", v1alpha1.DerivedParameter{Name: "processes", CEL: "2"}),
			"spec.derive[1].name: processes is derived already by spec.derive[0]; name it once"},
		"a name that is swept and derived": {derive("drill.depth", "1"), "spec.derive[0].name: drill.depth is swept, so it can't be derived too"},
		"no values":                        {swept(dimension("processes", "")), "spec.sweep[0].values: a swept parameter needs at least one value"},
		"a count of 0": {swept(dimension("drill.depth", "4k"), dimension("processes", "0")),
			`spec.sweep[1].values[0]: "0" is no whole number of at least 1`},
		"a count with a unit":            {swept(dimension("processes", "1 4k")), `spec.sweep[0].values[1]: "4k" is no whole number of at least 1`},
		"a count with a sign":            {swept(dimension("processes", "+4")), `spec.sweep[0].values[0]: "+4" is no whole number`},
		"a count with a fraction":        {swept(dimension("processes", "1.5")), `spec.sweep[0].values[0]: "1.5" is no whole number`},
		"a count that begins with 0":     {swept(dimension("processes", "04")), `spec.sweep[0].values[0]: "04" is no whole number`},
		"a size of nothing but its unit": {swept(dimension("drill.depth", "k")), `spec.sweep[0].values[0]: "k" is no size: write a whole number of kilobytes`},
		"an empty value":                 {swept(v1alpha1.SweepDimension{Name: "drill.depth", Values: []string{""}}), `spec.sweep[0].values[0]: "" is no size`},
		"a unit of another writing":      {swept(dimension("drill.depth", "4Ki")), `spec.sweep[0].values[0]: "4Ki" is no size`},
		"a size beyond counting":         {swept(dimension("drill.depth", "999999999999g")), `spec.sweep[0].values[0]: "999999999999g" is too large`},
		"two values that mean the same": {swept(dimension("drill.depth", "1m 4k 1024")),
			`spec.sweep[0].values[2]: "1024" is the same as values[0] ("1m"); give each value once`},
		"more points than a status can hold": {swept(counting("processes", 16), counting("clients", 16), dimension("drill.depth", "1k 2k")),
			"spec.sweep[2].values: the sweep has more than 256 points (16 × 16 × 2); spread it over several runs"},
		"points beyond counting": {swept(counting("processes", 64), counting("clients", 64), sizes("drill.depth", 64), sizes("drill.length", 64)),
			"spec.sweep[1].values: the sweep has more than 256 points (64 × 64 × 64 × 64)"},
		"a division that leaves a remainder, naming the point": {derive("processes", "drill.depth / 3 * 3"),
			"spec.derive[0].cel: 4096 / 3 leaves a remainder of 1 (at the point drill.depth=4k)"},
		"a value that is computed from itself": {derive("processes", "processes + 1"),
			"spec.derive[0].cel: processes can't be computed from itself"},
		"a division by what is zero at one point": {derive("processes", "8192 / (8192 - drill.depth)"),
			"spec.derive[0].cel: divides by zero (at the point drill.depth=8k)"},
		"a result of 0":            {derive("processes", "drill.depth - 4096"), "spec.derive[0].cel: gives 0; it must give at least 1 (at the point drill.depth=4k)"},
		"a result less than 0":     {derive("processes", "-drill.depth"), "spec.derive[0].cel: gives -4096; it must give at least 1"},
		"a result with a fraction": {derive("processes", "drill.depth * 1.5"), `spec.derive[0].cel: "drill.depth * 1.5" is no expression over whole numbers`},
		"a fraction alone":         {derive("processes", "1.5"), `spec.derive[0].cel: "1.5" gives a double; it must give a whole number`},
		"a result that is no number": {derive("processes", "drill.depth > 1"),
			`spec.derive[0].cel: "drill.depth > 1" gives a bool; it must give a whole number`},
		"a size that is no multiple of 1024": {derive("drill.length", "drill.depth + 1"), "spec.derive[0].cel: gives 4097 bytes; a size must be a multiple of 1024"},
		"an overflow":                        {derive("processes", "drill.depth * 9223372036854775807"), "spec.derive[0].cel: integer overflow"},
		"a result that is too large": {derive("processes", "drill.depth * 1000000000"),
			"spec.derive[0].cel: gives a number that is too large"},
		"a name that an expression can't know": {derive("processes", "4 * servers"), "undeclared reference to 'servers'"},
		"a function":                           {derive("processes", "size('abcd')"), "undeclared reference to 'size'"},
		"a loop":                               {derive("processes", "[1, 2].all(x, x > 0) ? 1 : 2"), "is no expression over whole numbers and the parameters of the run"},
		"what is no expression":                {derive("processes", "4 *"), `spec.derive[0].cel: "4 *" is no expression over whole numbers and the parameters of the run: Syntax error`},
		"a parameter that has no value":        {derive("processes", "4 * clients"), "spec.derive[0].cel: uses clients, which has no value; set it in the spec or sweep it"},
		"a value that is derived later": {derive("processes", "4 * clients", v1alpha1.DerivedParameter{Name: "clients", CEL: "2"}),
			"spec.derive[0].cel: uses clients, which is derived later; put spec.derive[1] before it"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			points, err := sweep.Expand(drill{}, &test.spec)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(points).To(BeNil())
		})
	}
}

func TestExpandGivesTheSamePointsEveryTime(t *testing.T) {
	g := NewWithT(t)
	spec := &v1alpha1.BenchmarkRunSpec{
		Sweep:  []v1alpha1.SweepDimension{dimension("clients", "1 2 4"), dimension("drill.depth", "4k 8k")},
		Derive: []v1alpha1.DerivedParameter{{Name: "processes", CEL: "4 * clients"}},
	}
	first, err := sweep.Expand(drill{}, spec)
	g.Expect(err).NotTo(HaveOccurred())
	for range 10 {
		g.Expect(sweep.Expand(drill{}, spec)).To(Equal(first))
	}
}

func BenchmarkExpand(b *testing.B) {
	for name, spec := range map[string]*v1alpha1.BenchmarkRunSpec{
		"256 points": {Sweep: []v1alpha1.SweepDimension{counting("processes", 16), counting("clients", 16)}},
		"256 derived points": {
			Sweep:  []v1alpha1.SweepDimension{counting("clients", 16), sizes("drill.depth", 16)},
			Derive: []v1alpha1.DerivedParameter{{Name: "processes", CEL: "4 * clients"}},
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := sweep.Expand(drill{}, spec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzExpandNeverGivesAnUnusableValue(f *testing.F) {
	for _, seed := range []string{"4 * clients", "drill.depth / 3", "clients > 1 ? 1 : 2", "-9223372036854775808 / -1", "[1].map(x, x)", "1 / 0", "((", "1u + 2u"} {
		f.Add(seed, "4k")
	}
	f.Fuzz(func(t *testing.T, cel, value string) {
		if len(cel) > 256 || len(value) > 32 {
			return // The API takes no longer ones.
		}
		for _, name := range []v1alpha1.SweepName{"processes", "drill.length"} {
			points, err := sweep.Expand(drill{}, &v1alpha1.BenchmarkRunSpec{
				Clients: v1alpha1.BenchmarkClients{Count: 2},
				Sweep:   []v1alpha1.SweepDimension{{Name: "drill.depth", Values: []string{value}}},
				Derive:  []v1alpha1.DerivedParameter{{Name: name, CEL: cel}},
			})
			if err != nil {
				continue
			}
			if got := points[0].Parameters[name]; !usable.MatchString(got) {
				t.Fatalf("%s is %q", name, got)
			}
		}
	})
}

// usable is how the API writes values.
var usable = regexp.MustCompile("^[1-9][0-9]{0,11}[kmg]?$")
