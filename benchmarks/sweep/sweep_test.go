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

// drill is a tool with parameters of each kind, and one without a value.
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
		{Name: "drill.depth", Kind: benchmarks.Size, Value: "64Ki"},
		{Name: "drill.length", Kind: benchmarks.Size, Value: "1Gi"},
		{Name: "drill.branch", Kind: benchmarks.Count, Value: "8"},
		{Name: "drill.level", Kind: benchmarks.Number, Value: "2"},
		{Name: "drill.bytes", Kind: benchmarks.Bytes, Value: "0"},
		{Name: "drill.bit", Kind: benchmarks.Word, Value: "round", Words: []string{"round", "flat"}},
	}
}

// dimension returns one swept parameter; its values are separated by spaces.
func dimension(name v1alpha1.SweepName, values string) v1alpha1.SweepDimension {
	d := v1alpha1.SweepDimension{Name: name}
	for value := range strings.FieldsSeq(values) {
		d.Values = append(d.Values, v1alpha1.SweepValue(value))
	}
	return d
}

// counting returns a dimension with the values 1 to n.
func counting(name v1alpha1.SweepName, n int) v1alpha1.SweepDimension {
	d := v1alpha1.SweepDimension{Name: name}
	for i := range n {
		d.Values = append(d.Values, v1alpha1.SweepValue(fmt.Sprint(i+1)))
	}
	return d
}

// sizes returns a dimension with the values 1Ki to nKi.
func sizes(name v1alpha1.SweepName, n int) v1alpha1.SweepDimension {
	d := counting(name, n)
	for i := range d.Values {
		d.Values[i] += "Ki"
	}
	return d
}

func TestExpand(t *testing.T) {
	for name, test := range map[string]struct {
		spec v1alpha1.BenchmarkRunSpec
		// want has one line per point with its varied parameters.
		want []string
	}{
		"without a sweep there is one point, which varies nothing": {want: []string{""}},
		"the last name varies fastest": {
			spec: v1alpha1.BenchmarkRunSpec{Sweep: []v1alpha1.SweepDimension{dimension("drill.depth", "4Ki 8Ki"), dimension("processes", "1 2 4")}},
			want: []string{
				"drill.depth=4Ki processes=1", "drill.depth=4Ki processes=2", "drill.depth=4Ki processes=4",
				"drill.depth=8Ki processes=1", "drill.depth=8Ki processes=2", "drill.depth=8Ki processes=4",
			},
		},
		"values stay in the order and the spelling of the spec": {
			spec: v1alpha1.BenchmarkRunSpec{Sweep: []v1alpha1.SweepDimension{dimension("drill.depth", "2048Ki 1Mi 512Ki")}},
			want: []string{"drill.depth=2048Ki", "drill.depth=1Mi", "drill.depth=512Ki"},
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
				"processes=1 drill.length=1Ki drill.depth=16Ki", "processes=3 drill.length=3Ki drill.depth=48Ki",
				"processes=1024 drill.length=1Mi drill.depth=16Mi", "processes=2097152 drill.length=2Gi drill.depth=32Gi",
			},
		},
		"an expression uses the values of the spec for what is not swept": {
			spec: v1alpha1.BenchmarkRunSpec{Derive: []v1alpha1.DerivedParameter{{Name: "processes", CEL: "drill.length / drill.depth"}}},
			want: []string{"processes=16384"},
		},
		"a range goes up to what is not exceeded": {
			spec: v1alpha1.BenchmarkRunSpec{Sweep: []v1alpha1.SweepDimension{{Name: "clients", Range: &v1alpha1.SweepRange{From: "2", To: "9", Step: "3"}}}},
			want: []string{"clients=2", "clients=5", "clients=8"},
		},
		"a range of numbers without a step goes by 1, and a number may begin at 0": {
			spec: v1alpha1.BenchmarkRunSpec{Sweep: []v1alpha1.SweepDimension{{Name: "drill.level", Range: &v1alpha1.SweepRange{From: "0", To: "2"}}}},
			want: []string{"drill.level=0", "drill.level=1", "drill.level=2"},
		},
		"a range of sizes is written with the largest unit": {
			spec: v1alpha1.BenchmarkRunSpec{Sweep: []v1alpha1.SweepDimension{{Name: "drill.depth", Range: &v1alpha1.SweepRange{From: "512Ki", To: "2Mi", Step: "512Ki"}}}},
			want: []string{"drill.depth=512Ki", "drill.depth=1Mi", "drill.depth=1536Ki", "drill.depth=2Mi"},
		},
		"a range of one value has one": {
			spec: v1alpha1.BenchmarkRunSpec{Sweep: []v1alpha1.SweepDimension{{Name: "drill.bytes", Range: &v1alpha1.SweepRange{From: "0", To: "0", Step: "1"}}}},
			want: []string{"drill.bytes=0"},
		},
		"powers of two double up to what is not exceeded": {
			spec: v1alpha1.BenchmarkRunSpec{Sweep: []v1alpha1.SweepDimension{{Name: "processes", PowersOfTwo: &v1alpha1.SweepPowers{From: "1", To: "20"}}}},
			want: []string{"processes=1", "processes=2", "processes=4", "processes=8", "processes=16"},
		},
		"powers of two of a size may begin with any size": {
			spec: v1alpha1.BenchmarkRunSpec{Sweep: []v1alpha1.SweepDimension{{Name: "drill.bytes", PowersOfTwo: &v1alpha1.SweepPowers{From: "300", To: "2400"}}}},
			want: []string{"drill.bytes=300", "drill.bytes=600", "drill.bytes=1200", "drill.bytes=2400"},
		},
		"words are swept as they stand": {
			spec: v1alpha1.BenchmarkRunSpec{Sweep: []v1alpha1.SweepDimension{dimension("drill.bit", "round flat")}},
			want: []string{"drill.bit=round", "drill.bit=flat"},
		},
		"a zipped sweep takes the first of all, then the second of all": {
			spec: v1alpha1.BenchmarkRunSpec{SweepMode: v1alpha1.SweepZipped, Sweep: []v1alpha1.SweepDimension{
				dimension("clients", "1 2 3"), {Name: "processes", Range: &v1alpha1.SweepRange{From: "8", To: "24", Step: "8"}}, dimension("drill.depth", "1Ki 2Ki 3Ki")}},
			want: []string{"clients=1 processes=8 drill.depth=1Ki", "clients=2 processes=16 drill.depth=2Ki", "clients=3 processes=24 drill.depth=3Ki"},
		},
		"the 2015 paper's items per process follow from the total, all directories counted": {
			spec: v1alpha1.BenchmarkRunSpec{
				Sweep:  []v1alpha1.SweepDimension{{Name: "processes", PowersOfTwo: &v1alpha1.SweepPowers{From: "1", To: "256"}}},
				Derive: []v1alpha1.DerivedParameter{{Name: "drill.bytes", CEL: "840960 / treeDirectories(drill.branch, drill.level) / processes"}},
			},
			want: []string{"processes=1 drill.bytes=11520", "processes=2 drill.bytes=5760", "processes=4 drill.bytes=2880", "processes=8 drill.bytes=1440",
				"processes=16 drill.bytes=720", "processes=32 drill.bytes=360", "processes=64 drill.bytes=180", "processes=128 drill.bytes=90", "processes=256 drill.bytes=45"},
		},
		"and with only the leaves counted, as mdtest -L does": {
			spec: v1alpha1.BenchmarkRunSpec{Derive: []v1alpha1.DerivedParameter{{Name: "drill.bytes", CEL: "737280 / treeLeaves(drill.branch, drill.level)"}}},
			want: []string{"drill.bytes=11520"},
		},
		"the trees of the 2014 paper have 3661 and 27931 directories": {
			spec: v1alpha1.BenchmarkRunSpec{Derive: []v1alpha1.DerivedParameter{
				{Name: "processes", CEL: "32 * 5 * treeDirectories(60, 2)"}, {Name: "clients", CEL: "32 * 5 * treeDirectories(30, 3)"}}},
			want: []string{"processes=585760 clients=4468960"},
		},
		"a tree of one branch is a chain, and one of no depth a single directory": {
			spec: v1alpha1.BenchmarkRunSpec{Derive: []v1alpha1.DerivedParameter{
				{Name: "processes", CEL: "treeDirectories(1, 1000000)"}, {Name: "clients", CEL: "treeLeaves(1, 1000000)"}, {Name: "drill.bytes", CEL: "treeDirectories(7, 0)"}}},
			want: []string{"processes=1000001 clients=1 drill.bytes=1"},
		},
		"a number and a number of bytes may be computed to 0": {
			spec: v1alpha1.BenchmarkRunSpec{Derive: []v1alpha1.DerivedParameter{{Name: "drill.level", CEL: "processes - 1"}, {Name: "drill.bytes", CEL: "drill.level * 3"}}},
			want: []string{"drill.level=0 drill.bytes=0"},
		},
		"a number of bytes is computed in bytes": {
			spec: v1alpha1.BenchmarkRunSpec{
				Sweep:  []v1alpha1.SweepDimension{dimension("drill.bytes", "1000 4Ki 1Ti")},
				Derive: []v1alpha1.DerivedParameter{{Name: "clients", CEL: "drill.bytes / 8"}},
			},
			want: []string{"drill.bytes=1000 clients=125", "drill.bytes=4Ki clients=512", "drill.bytes=1Ti clients=137438953472"},
		},
		"a speed-up can be along what is swept": {
			spec: v1alpha1.BenchmarkRunSpec{Along: "processes", Sweep: []v1alpha1.SweepDimension{dimension("drill.bit", "flat"), dimension("processes", "1 2")}},
			want: []string{"drill.bit=flat processes=1", "drill.bit=flat processes=2"},
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
	spec := &v1alpha1.BenchmarkRunSpec{Sweep: []v1alpha1.SweepDimension{dimension("drill.depth", "4Ki")}}
	points, err := sweep.Expand(drill{}, spec)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(points).To(HaveLen(1))
	g.Expect(points[0].Parameters).To(Equal(map[v1alpha1.SweepName]string{
		"processes": "1", "drill.depth": "4Ki", "drill.length": "1Gi", "drill.branch": "8", "drill.level": "2", "drill.bytes": "0", "drill.bit": "round"}),
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
			Sweep:  []v1alpha1.SweepDimension{dimension("drill.depth", "4Ki 8Ki")},
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
			`spec.sweep[1].name: "drill.speed" is not a parameter of this run of drill; it has processes, clients, drill.depth, drill.length, drill.branch, drill.level, drill.bytes, drill.bit`},
		"an unknown derived name": {derive("drill.speed", "1"), `spec.derive[0].name: "drill.speed" is not a parameter of this run of drill; it has processes`},
		"a name that is swept twice": {swept(dimension("processes", "1"), dimension("processes", "2")),
			"spec.sweep[1].name: processes is swept already; name it once"},
		"a name that is derived twice": {derive("processes", "1", v1alpha1.DerivedParameter{Name: "processes", CEL: "2"}),
			"spec.derive[1].name: processes is derived already by spec.derive[0]; name it once"},
		"a name that is swept and derived": {derive("drill.depth", "1"), "spec.derive[0].name: drill.depth is swept, so it can't be derived too"},
		"no values":                        {swept(dimension("processes", "")), "spec.sweep[0].values: a swept parameter needs at least one value"},
		"a count of 0": {swept(dimension("drill.depth", "4Ki"), dimension("processes", "0")),
			`spec.sweep[1].values[0]: "0" is no whole number of at least 1`},
		"a count with a unit":            {swept(dimension("processes", "1 4Ki")), `spec.sweep[0].values[1]: "4Ki" is no whole number of at least 1`},
		"a count with a sign":            {swept(dimension("processes", "+4")), `spec.sweep[0].values[0]: "+4" is no whole number`},
		"a count with a fraction":        {swept(dimension("processes", "1.5")), `spec.sweep[0].values[0]: "1.5" is no whole number`},
		"a count that begins with 0":     {swept(dimension("processes", "04")), `spec.sweep[0].values[0]: "04" is no whole number`},
		"a size of nothing but its unit": {swept(dimension("drill.depth", "k")), `spec.sweep[0].values[0]: "k" is no size: write a whole number of at least 1 with Ki`},
		"an empty value":                 {swept(v1alpha1.SweepDimension{Name: "drill.depth", Values: []v1alpha1.SweepValue{""}}), `spec.sweep[0].values[0]: "" is no size`},
		"a unit of another writing":      {swept(dimension("drill.depth", "4m")), `spec.sweep[0].values[0]: "4m" has a unit with two meanings; write 4Mi`},
		"a size beyond counting":         {swept(dimension("drill.depth", "999999999999Gi")), `spec.sweep[0].values[0]: "999999999999Gi" is too large`},
		"two values that mean the same": {swept(dimension("drill.depth", "1Mi 4Ki 1024Ki")),
			`spec.sweep[0].values[2]: "1024Ki" is the same as values[0] ("1Mi"); give each value once`},
		"more points than a status can hold": {swept(counting("processes", 16), counting("clients", 16), dimension("drill.depth", "1Ki 2Ki")),
			"spec.sweep[2]: the sweep has more than 256 points (16 × 16 × 2); spread it over several runs"},
		"points beyond counting": {swept(counting("processes", 64), counting("clients", 64), sizes("drill.depth", 64), sizes("drill.length", 64)),
			"spec.sweep[1]: the sweep has more than 256 points (64 × 64 × 64 × 64)"},
		"a division that leaves a remainder, naming the point": {derive("processes", "drill.depth / 3 * 3"),
			"spec.derive[0].cel: drill.depth / 3 * 3 at drill.depth=4Ki: 4096 / 3 leaves a remainder of 1"},
		"a value that is computed from itself": {derive("processes", "processes + 1"),
			"spec.derive[0].cel: processes can't be computed from itself"},
		"a division by what is zero at one point": {derive("processes", "8192 / (8192 - drill.depth)"),
			"spec.derive[0].cel: 8192 / (8192 - drill.depth) at drill.depth=8Ki: divides by zero"},
		"a result of 0":            {derive("processes", "drill.depth - 4096"), "spec.derive[0].cel: drill.depth - 4096 at drill.depth=4Ki: gives 0; it must give at least 1"},
		"a result less than 0":     {derive("processes", "-drill.depth"), "spec.derive[0].cel: -drill.depth at drill.depth=4Ki: gives -4096; it must give at least 1"},
		"a result with a fraction": {derive("processes", "drill.depth * 1.5"), `spec.derive[0].cel: "drill.depth * 1.5" is no expression over whole numbers`},
		"a fraction alone":         {derive("processes", "1.5"), `spec.derive[0].cel: "1.5" gives a double; it must give a whole number`},
		"a result that is no number": {derive("processes", "drill.depth > 1"),
			`spec.derive[0].cel: "drill.depth > 1" gives a bool; it must give a whole number`},
		"a size that is no multiple of 1024": {derive("drill.length", "drill.depth + 1"), "spec.derive[0].cel: drill.depth + 1 at drill.depth=4Ki: gives 4097 bytes; a size must be a multiple of 1024"},
		"an overflow":                        {derive("processes", "drill.depth * 9223372036854775807"), "spec.derive[0].cel: drill.depth * 9223372036854775807 at drill.depth=4Ki: integer overflow"},
		"a result that is too large": {derive("processes", "drill.depth * 1000000000"),
			"spec.derive[0].cel: drill.depth * 1000000000 at drill.depth=4Ki: gives a number that is too large"},
		"a name that an expression can't know": {derive("processes", "4 * servers"), "undeclared reference to 'servers'"},
		"a function":                           {derive("processes", "size('abcd')"), "undeclared reference to 'size'"},
		"a loop":                               {derive("processes", "[1, 2].all(x, x > 0) ? 1 : 2"), "is no expression over whole numbers and the parameters of the run"},
		"what is no expression":                {derive("processes", "4 *"), `spec.derive[0].cel: "4 *" is no expression over whole numbers and the parameters of the run: Syntax error`},
		"a parameter that has no value":        {derive("processes", "4 * clients"), "spec.derive[0].cel: 4 * clients at drill.depth=4Ki uses clients, which has no value; set it in the spec or sweep it"},
		"a remainder in the words of the spec": {v1alpha1.BenchmarkRunSpec{
			Sweep:  []v1alpha1.SweepDimension{dimension("processes", "1 2 3 4")},
			Derive: []v1alpha1.DerivedParameter{{Name: "drill.branch", CEL: "512 / processes"}}},
			"spec.derive[0].cel: 512 / processes at processes=3: 512 / 3 leaves a remainder of 2"},
		"no whole number of items": {v1alpha1.BenchmarkRunSpec{
			Sweep:  []v1alpha1.SweepDimension{dimension("processes", "64 256 1024")},
			Derive: []v1alpha1.DerivedParameter{{Name: "drill.branch", CEL: "840960 / treeDirectories(8, 2) / processes"}}},
			"at processes=1024: 11520 / 1024 leaves a remainder of 256"},
		"a derived word":  {derive("drill.bit", "1"), "spec.derive[0].name: drill.bit is a word, which can't be computed; set it in the spec or sweep it"},
		"a word in use":   {derive("processes", "drill.bit * 2"), `spec.derive[0].cel: "drill.bit * 2" uses drill.bit, which is a word; it can use numbers and sizes`},
		"a word compared": {derive("processes", "drill.bit == 'flat' ? 1 : 2"), "uses drill.bit, which is a word"},
		"an unknown word": {swept(dimension("drill.bit", "round square")), `spec.sweep[0].values[1]: "square" is none of round, flat`},
		"a word twice":    {swept(dimension("drill.bit", "round round")), `spec.sweep[0].values[1]: "round" is the same as values[0] ("round")`},
		"a tree beyond counting": {derive("processes", "treeDirectories(2, 63)"),
			"spec.derive[0].cel: treeDirectories(2, 63) at drill.depth=4Ki: treeDirectories(2, 63) is a number that is too large"},
		"leaves beyond counting":       {derive("processes", "treeLeaves(10, 19)"), "treeLeaves(10, 19) is a number that is too large"},
		"a chain beyond counting":      {derive("processes", "treeDirectories(1, 9223372036854775807)"), "is a number that is too large"},
		"a tree without branches":      {derive("processes", "treeLeaves(0, 2)"), "treeLeaves(0, 2) is no tree: it has at least 1 branch and a depth of at least 0"},
		"a tree of less than no depth": {derive("processes", "treeDirectories(2, 0 - 1)"), "treeDirectories(2, -1) is no tree"},
		"zipped lists of other lengths": {v1alpha1.BenchmarkRunSpec{SweepMode: v1alpha1.SweepZipped, Sweep: []v1alpha1.SweepDimension{
			dimension("processes", "1 2 3"), dimension("drill.depth", "1Ki 2Ki 3Ki"), dimension("clients", "1 2")}},
			"spec.sweep[2]: clients has 2 values, and processes (spec.sweep[0]) has 3; a zipped sweep takes one of each for a point, so give them equally many"},
		"a range of words": {swept(v1alpha1.SweepDimension{Name: "drill.bit", Range: &v1alpha1.SweepRange{From: "flat", To: "round"}}),
			"spec.sweep[0].range: drill.bit takes words, which can't be counted; list them in values"},
		"a range that goes down": {swept(v1alpha1.SweepDimension{Name: "processes", Range: &v1alpha1.SweepRange{From: "9", To: "2"}}),
			"spec.sweep[0].range: from (9) is greater than to (2); exchange them"},
		"a range by nothing": {swept(v1alpha1.SweepDimension{Name: "drill.level", Range: &v1alpha1.SweepRange{From: "0", To: "2", Step: "0"}}),
			`spec.sweep[0].range.step: "0" gives the same value for ever; it must be at least 1`},
		"a range of sizes without a step": {swept(v1alpha1.SweepDimension{Name: "drill.bytes", Range: &v1alpha1.SweepRange{From: "4Ki", To: "16Ki"}}),
			`spec.sweep[0].range.step: a range of sizes needs a step, such as "4Ki"`},
		"a range of too many": {swept(v1alpha1.SweepDimension{Name: "processes", Range: &v1alpha1.SweepRange{From: "1", To: "65"}}),
			"spec.sweep[0].range: from 1 to 65 by 1 are more than 64 values; make step larger, or spread them over several runs"},
		"a range of what is no number": {swept(v1alpha1.SweepDimension{Name: "processes", Range: &v1alpha1.SweepRange{From: "1", To: "many"}}),
			`spec.sweep[0].range.to: "many" is no whole number`},
		"powers of two from nothing": {swept(v1alpha1.SweepDimension{Name: "drill.bytes", PowersOfTwo: &v1alpha1.SweepPowers{From: "0", To: "1Mi"}}),
			"spec.sweep[0].powersOfTwo.from: 0 doubled stays 0"},
		"powers of two from another number": {swept(v1alpha1.SweepDimension{Name: "processes", PowersOfTwo: &v1alpha1.SweepPowers{From: "3", To: "48"}}),
			`spec.sweep[0].powersOfTwo.from: "3" is no power of two`},
		"a speed-up along what is not swept": {v1alpha1.BenchmarkRunSpec{Along: "clients", Sweep: []v1alpha1.SweepDimension{dimension("processes", "1 2")}},
			"spec.along: clients is not swept, so there is no speed-up along it; this run sweeps processes"},
		"a speed-up without a sweep": {v1alpha1.BenchmarkRunSpec{Along: "clients"}, "spec.along: clients is not swept, so there is no speed-up along it; sweep it, or remove spec.along"},
		"a speed-up along words": {v1alpha1.BenchmarkRunSpec{Along: "drill.bit", Sweep: []v1alpha1.SweepDimension{dimension("drill.bit", "flat")}},
			"spec.along: drill.bit takes words, which have no ratio"},
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

func TestExpandReturnsTheSamePointsEveryTime(t *testing.T) {
	g := NewWithT(t)
	spec := &v1alpha1.BenchmarkRunSpec{
		Sweep:  []v1alpha1.SweepDimension{dimension("clients", "1 2 4"), dimension("drill.depth", "4Ki 8Ki")},
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
	for _, seed := range []string{"4 * clients", "drill.depth / 3", "clients > 1 ? 1 : 2", "-9223372036854775808 / -1", "[1].map(x, x)", "1 / 0", "((", "1u + 2u",
		"treeDirectories(clients, 63)", "treeLeaves(drill.depth, clients)"} {
		f.Add(seed, "4Ki")
	}
	f.Fuzz(func(t *testing.T, cel, value string) {
		if len(cel) > 256 || len(value) > 32 {
			return // The API accepts no longer ones.
		}
		for _, name := range []v1alpha1.SweepName{"processes", "drill.length"} {
			points, err := sweep.Expand(drill{}, &v1alpha1.BenchmarkRunSpec{
				Clients: v1alpha1.BenchmarkClients{Count: 2},
				Sweep:   []v1alpha1.SweepDimension{{Name: "drill.depth", Values: []v1alpha1.SweepValue{v1alpha1.SweepValue(value)}}},
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

// usable matches values in the format of the API.
var usable = regexp.MustCompile("^[1-9][0-9]{0,11}([KMG]i)?$")
