package stats

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
)

// differences returns the differences between the two sides. Refused lists those that give the numbers another meaning: the tool and its
// settings, the statistic, the units, and whether caches were dropped. Differs lists the others: the place, the machines and the versions.
// For a published table only its parameters and units are known.
func differences(pair Pair) results.Comparison {
	out := results.Comparison{Of: pair.Of}
	here, there := pair.Run, pair.Baseline
	refuse := func(what, a, b string) { out.Refused = added(out.Refused, what, a, b) }
	differ := func(what, a, b string) { out.Differs = added(out.Differs, what, a, b) }
	constants(here.Points, there.Points, refuse, differ)
	units(here.Points, there.Points, refuse)
	if here.Spec.ToolName() == "" || there.Spec.ToolName() == "" {
		return out
	}
	refuse("spec.tool", string(here.Spec.ToolName()), string(there.Spec.ToolName()))
	refuse("spec.statistic", statisticOf(here), statisticOf(there))
	refuse("spec.caches", cachesOf(here), cachesOf(there))
	if here.Spec.ToolName() == there.Spec.ToolName() {
		options(here, there, refuse, differ)
	}
	differ("spec.warmUp", text(here.Spec.WarmUp), text(there.Spec.WarmUp))
	differ("spec.clients.spread", spreadOf(here), spreadOf(there))
	differ("spec.clients.maxProcessesPerNode",
		fmt.Sprint(here.Spec.Clients.MaxProcessesPerNode), fmt.Sprint(there.Spec.Clients.MaxProcessesPerNode))
	provenance(here, there, func(what, a, b string) {
		if a != "" && b != "" { // a value that one side lacks is not known to differ
			differ(what, a, b)
		}
	})
	return out
}

// added adds a difference if the two values differ.
func added(all []results.Difference, what, here, there string) []results.Difference {
	if here == there {
		return all
	}
	const most = 96
	shown := func(value string) string { return v1alpha1.Cut(cmp.Or(value, "not set"), most) }
	return append(all, results.Difference{What: what, Here: shown(here), There: shown(there)})
}

// certainty lists parameters that affect only the precision of a measurement, and not its meaning.
var certainty = []v1alpha1.SweepName{"mdtest.iterations", "ior.iterations", "postmark.seed"}

// constants compares the parameters that vary on neither side, because those of the tool define the measurement.
func constants(points, baseline []results.Point, refuse, differ func(what, a, b string)) {
	here, there := valuesOf(points), valuesOf(baseline)
	for _, name := range results.Names(points) {
		if len(here[name]) != 1 || len(there[name]) != 1 || here[name][0] == there[name][0] || there[name][0] == results.BestOf {
			continue
		}
		say := differ
		if strings.Contains(string(name), ".") && !slices.Contains(certainty, name) {
			say = refuse
		}
		say(string(name), first(points, name), first(baseline, name))
	}
}

// first returns the first value of a parameter, as it was written.
func first(points []results.Point, name v1alpha1.SweepName) string {
	for _, p := range points {
		if value := p.Value(name); value != "" {
			return value
		}
	}
	return ""
}

// units compares the units of metrics that exist on both sides without a common unit.
func units(points, baseline []results.Point, refuse func(what, a, b string)) {
	here, there := unitsOf(points), unitsOf(baseline)
	for _, name := range slices.Sorted(maps.Keys(here)) {
		other := there[name]
		common := slices.ContainsFunc(here[name], func(unit string) bool { return slices.Contains(other, unit) })
		if len(other) > 0 && !common {
			refuse("the unit of "+name, strings.Join(here[name], " and "), strings.Join(other, " and "))
		}
	}
}

func unitsOf(points []results.Point) map[string][]string {
	out := map[string][]string{}
	for _, p := range points {
		for _, m := range p.Metrics {
			if !slices.Contains(out[m.Name], m.Unit) {
				out[m.Name] = append(out[m.Name], m.Unit)
			}
		}
	}
	return out
}

func statisticOf(run results.Run) string {
	return string(cmp.Or(run.Spec.Statistic, v1alpha1.StatisticMean))
}

func spreadOf(run results.Run) string {
	return string(cmp.Or(run.Spec.Clients.Spread, v1alpha1.SpreadEven))
}

func cachesOf(run results.Run) string {
	if run.Spec.Caches == nil {
		return "not dropped"
	}
	return fmt.Sprintf("dropped of %s before %s", run.Spec.Caches.Drop, cmp.Or(run.Spec.Caches.Before, v1alpha1.CachesBeforeRepetitions))
}

// ignored lists options that do not affect the measurement, or that are compared elsewhere.
var ignored = []string{"custom.parameters", "custom.metrics", "custom.versionCommand", "custom.spaceBytes"}

// options compares the options of the tool that no sweep can vary, and those that a document made from a status does not list for each
// point. The API server fills in defaults. In a document that comes from no cluster, an option that only one side has may be the default on
// the other.
func options(here, there results.Run, refuse, differ func(what, a, b string)) {
	member := string(here.Spec.ToolName())
	a, b := fields(here.Spec, member), fields(there.Spec, member)
	parameters := slices.Concat(results.Names(here.Points), results.Names(there.Points))
	for _, key := range slices.Sorted(maps.Keys(union(a, b))) {
		name := member + "." + key
		if slices.Contains(parameters, v1alpha1.SweepName(name)) || slices.Contains(ignored, name) {
			continue
		}
		_, isHere := a[key]
		_, isThere := b[key]
		switch saved := here.UID == "" || there.UID == ""; {
		case slices.Contains(certainty, v1alpha1.SweepName(name)):
			differ(name, text(a[key]), text(b[key]))
		case isFlag(a[key]) || isFlag(b[key]):
			refuse(name, text(a[key] == true), text(b[key] == true)) // an option that is not set is left out
		case saved && isHere != isThere && !isList(a[key]) && !isList(b[key]):
			differ(name, text(a[key]), text(b[key]))
		default:
			refuse(name, text(a[key]), text(b[key]))
		}
	}
	custom(here.Spec.Custom, there.Spec.Custom, refuse)
}

// custom compares the definitions of the metrics that exist on both sides.
func custom(here, there *v1alpha1.CustomSpec, refuse func(what, a, b string)) {
	if here == nil || there == nil {
		return
	}
	for _, m := range here.Metrics {
		i := slices.IndexFunc(there.Metrics, func(o v1alpha1.CustomMetric) bool { return o.Name == m.Name && o.Unit == m.Unit })
		if i >= 0 {
			refuse("custom.metrics, "+m.Name, text(m), text(there.Metrics[i]))
		}
	}
}

func isFlag(value any) bool { _, is := value.(bool); return is }
func isList(value any) bool { _, is := value.([]any); return is }

// fields returns the set fields of a member of the spec.
func fields(spec v1alpha1.BenchmarkRunSpec, member string) map[string]any {
	var all map[string]json.RawMessage
	var out map[string]any
	if raw, err := json.Marshal(spec); err == nil {
		_ = json.Unmarshal(raw, &all)         // valid, because Marshal wrote it
		_ = json.Unmarshal(all[member], &out) // a member that is not set has no fields
	}
	return out
}

func union(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	maps.Copy(out, b)
	return out
}

// text formats a value as JSON, but a word without quotation marks, and nil as an empty text.
func text(value any) string {
	raw, err := json.Marshal(value)
	if err != nil || string(raw) == "null" {
		return ""
	}
	return strings.Trim(string(raw), `"`)
}

// provenance compares the systems and the software of the two measurements.
func provenance(here, there results.Run, differ func(what, a, b string)) {
	a, b := here.Provenance, there.Provenance
	version := func(p results.Provenance) string { return strings.SplitN(p.FileSystem, ", ", 2)[0] } // the uid and the generation follow
	differ("the filesystem's version", version(a), version(b))
	others := results.TargetFacts(there)
	for i, fact := range results.TargetFacts(here) {
		differ(fact.What, fact.Value, others[i].Value)
	}
	differ("the FileSystem's spec", changedFields(a.FileSystemSpec, b.FileSystemSpec), changedFields(b.FileSystemSpec, a.FileSystemSpec))
	differ("the daemons' configuration", short(a.ConfigHash), short(b.ConfigHash))
	servers(a, b, differ)
	differ("the daemons' pinning", a.Pinning, b.Pinning)
	differ("the servers and clients with RDMA", a.Transport, b.Transport)
	differ("the pods' changes by admission", podChanges(a), podChanges(b))
	differ("the tool's version", a.ToolVersion, b.ToolVersion)
	differ("the image", a.Image, b.Image)
	if a.Image == b.Image {
		differ("the image's digest", a.ImageID, b.ImageID)
	}
	for _, fact := range []struct {
		what string
		of   func(v1alpha1.NodeProvenance) string
	}{
		{"the clients", func(n v1alpha1.NodeProvenance) string { return n.Node }},
		{"the clients' kernel", func(n v1alpha1.NodeProvenance) string { return n.Kernel }},
		{"the clients' processors", func(n v1alpha1.NodeProvenance) string { return n.CPUModel }},
	} {
		differ(fact.what, clients(a, fact.of), clients(b, fact.of))
	}
	placements(here.Points, there.Points, differ)
}

// podChanges returns the changes that admission made to the pods of a run, or a text that it made none. For a document that comes from no
// cluster this is unknown.
func podChanges(p results.Provenance) string {
	if p.FileSystem == "" {
		return ""
	}
	return cmp.Or(strings.Join(p.PodChanges, ", "), "none recorded")
}

// servers compares the numbers, versions and sizes of servers and targets. For two runs on the same FileSystem, it also detects that the
// same number of different servers was there.
func servers(a, b results.Provenance, differ func(what, a, b string)) {
	sameServer := func(x, y v1alpha1.ServerCount) bool { return x == y }
	// The size of a directory changes with whatever else is on its disk.
	const percent = 0.01
	sameTargets := func(x, y v1alpha1.TargetCount) bool {
		return x.StoragePool == y.StoragePool && x.Count == y.Count &&
			math.Abs(float64(x.CapacityBytes-y.CapacityBytes)) <= percent*float64(max(x.CapacityBytes, y.CapacityBytes))
	}
	before := [2]string{others(a.ServerCounts, b.ServerCounts, sameServer), others(a.TargetCounts, b.TargetCounts, sameTargets)}
	differ("the number of servers", before[0], others(b.ServerCounts, a.ServerCounts, sameServer))
	differ("the number of targets", before[1], others(b.TargetCounts, a.TargetCounts, sameTargets))
	uid := func(p results.Provenance) string {
		_, rest, _ := strings.Cut(p.FileSystem, ", ")
		return strings.SplitN(rest, ", ", 2)[0]
	}
	if uid(a) == uid(b) && before == [2]string{} {
		differ("the hash of all servers and targets", short(a.MembersHash), short(b.MembersHash))
	}
}

// others formats the counts that differ between the sides. It is empty if all are equal, or if one side was not counted.
func others[T fmt.Stringer](here, there []T, same func(a, b T) bool) string {
	in := func(one T, all []T) bool {
		return slices.ContainsFunc(all, func(other T) bool { return same(one, other) })
	}
	var words []string
	for _, one := range here {
		if !in(one, there) {
			words = append(words, one.String())
		}
	}
	more := slices.ContainsFunc(there, func(one T) bool { return !in(one, here) })
	switch {
	case len(here) == 0 || len(there) == 0:
		return ""
	case len(words) == 0 && more:
		return "without that"
	}
	return strings.Join(words, ", ")
}

// placements names the first points with the same parameters whose processes were placed differently.
func placements(points, baseline []results.Point, differ func(what, a, b string)) {
	keys := keysOf(points, baseline)
	others := map[string]string{}
	for _, p := range baseline {
		if key, complete := keyOf(p, keys); complete {
			others[key] = p.Placement
		}
	}
	for _, p := range points {
		key, complete := keyOf(p, keys)
		if other := others[key]; complete && p.Placement != "" && other != "" && other != p.Placement {
			differ(fmt.Sprintf("the placement of point %d", p.Index), p.Placement, other)
			return
		}
	}
}

// clients returns the distinct values of a property of the clients.
func clients(p results.Provenance, fact func(v1alpha1.NodeProvenance) string) string {
	var out []string
	for _, c := range p.Clients {
		if value := fact(c); value != "" && !slices.Contains(out, value) {
			out = append(out, value)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// changedFields lists the fields that differ between the specs of two FileSystems.
func changedFields(spec, other *v1alpha1.FileSystemSpec) string {
	if spec == nil || other == nil {
		return ""
	}
	all := func(s *v1alpha1.FileSystemSpec) map[string]json.RawMessage {
		var out map[string]json.RawMessage
		if raw, err := json.Marshal(s); err == nil {
			_ = json.Unmarshal(raw, &out) // valid, because Marshal wrote it
		}
		return out
	}
	a, b := all(spec), all(other)
	changed := map[string]json.RawMessage{}
	for name := range a {
		if string(a[name]) != string(b[name]) {
			changed[name] = a[name]
		}
	}
	if len(changed) == 0 {
		return "without that"
	}
	return text(changed)
}

// short returns the beginning of a hash.
func short(hash string) string {
	const most = 12
	return hash[:min(len(hash), most)]
}
