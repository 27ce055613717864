package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// option describes the field of the spec that an option of a tool's command line sets.
type option struct {
	// field of the spec, as --set names it; empty for an option that does not affect the measurement.
	field string
	// argument is true for an option with an argument; fixed is the value of one without.
	argument bool
	fixed    string
	// list is true if the value is appended to a field that is a list.
	list bool
	// words maps the tool's arguments to the values of the field, if they differ.
	words map[string]string
}

// setting is one field of a spec and its value, as --set writes it.
type setting struct{ field, value string }

var yes = "true"

// optionsOf has the options of the tools that print their command line: mdtest.1 and options.c of github.com/hpc/ior, and iozone.1.
var optionsOf = map[v1alpha1.BenchmarkTool]map[string]option{
	v1alpha1.ToolMdtest: {
		"-d": {argument: true}, "-v": {}, "-P": {}, "-Z": {}, "-i": {field: "mdtest.iterations", argument: true},
		"-I": {field: "mdtest.items", argument: true}, "-n": {field: "mdtest.itemsPerProcess", argument: true},
		"-z": {field: "mdtest.depth", argument: true}, "-b": {field: "mdtest.branch", argument: true},
		"-L": {field: "mdtest.leafOnly", fixed: yes}, "-u": {field: "mdtest.uniqueDirectories", fixed: yes},
		"-F": {field: "mdtest.filesOnly", fixed: yes}, "-D": {field: "mdtest.directoriesOnly", fixed: yes},
		"-w": {field: "mdtest.writeBytes", argument: true}, "-e": {field: "mdtest.readBytes", argument: true},
		"-y": {field: "mdtest.syncWrites", fixed: yes}, "-N": {field: "mdtest.stride", argument: true},
		"-C": {field: "mdtest.phases", fixed: string(v1alpha1.MdtestCreate), list: true}, "-T": {field: "mdtest.phases", fixed: string(v1alpha1.MdtestStat), list: true},
		"-E": {field: "mdtest.phases", fixed: string(v1alpha1.MdtestRead), list: true}, "-r": {field: "mdtest.phases", fixed: string(v1alpha1.MdtestRemove), list: true},
	},
	v1alpha1.ToolIOR: {
		"-o": {argument: true}, "-O": {argument: true}, "-g": {}, "-v": {}, "-k": {},
		"-a": {field: "ior.interface", argument: true}, "-b": {field: "ior.blockSize", argument: true},
		"-t": {field: "ior.transferSize", argument: true}, "-s": {field: "ior.segments", argument: true},
		"-i": {field: "ior.iterations", argument: true}, "-F": {field: "ior.filePerProcess", fixed: yes},
		"-c": {field: "ior.collective", fixed: yes}, "-C": {field: "ior.reorderTasks", fixed: yes},
		"-e": {field: "ior.fsync", fixed: yes}, "-z": {field: "ior.randomOffset", fixed: yes},
		"--posix.odirect": {field: "ior.directIO", fixed: yes}, "-w": {field: "ior.operations", fixed: string(v1alpha1.IORWrite), list: true},
		"-r": {field: "ior.operations", fixed: string(v1alpha1.IORRead), list: true},
	},
	v1alpha1.ToolIOzone: {
		"-+m": {field: "iozone.mode", argument: true, fixed: string(v1alpha1.IOzoneDistributed)}, "-+h": {argument: true}, "-+H": {argument: true},
		"-t": {field: "processes", argument: true}, "-r": {field: "iozone.recordSize", argument: true},
		"-s": {field: "iozone.fileSize", argument: true},
		"-i": {field: "iozone.tests", argument: true, list: true, words: map[string]string{"0": "Write", "1": "Read", "2": "Random"}},
		"-w": {}, "-e": {field: "iozone.includeFlush", fixed: yes}, "-c": {field: "iozone.includeClose", fixed: yes},
		"-I": {field: "iozone.directIO", fixed: yes}, "-T": {field: "iozone.useThreads", fixed: yes},
		"-+n": {field: "iozone.noRetest", fixed: yes},
	},
}

// commandLines match the command line in an output, in each form in which a version prints it, and processCounts the number of processes.
var (
	commandLines = map[v1alpha1.BenchmarkTool]*regexp.Regexp{
		v1alpha1.ToolMdtest: regexp.MustCompile(`(?m)^\s*Command line used: (.*)$`),
		v1alpha1.ToolIOR:    regexp.MustCompile(`(?m)^\s*"?Command line(?: used)?"?\s*[:=] ?(.*)$`),
		v1alpha1.ToolIOzone: regexp.MustCompile(`(?m)^\s*Command line used: (.*)$`),
	}
	processCounts = map[v1alpha1.BenchmarkTool]*regexp.Regexp{
		v1alpha1.ToolMdtest: regexp.MustCompile(`(?m)^mdtest-\S+ was launched with (\d+) total task`),
		v1alpha1.ToolIOR:    regexp.MustCompile(`(?m)^(?:tasks\s*: |\s*clients\s*= |\s*"(?:numTasks|tasks)": )(\d+)`),
	}
)

// recognize reads the command line of the tool from an output. Unknown lists the options without a field in the spec.
func recognize(tool v1alpha1.BenchmarkTool, output []byte) (found []setting, command, unknown []string) {
	if tool == v1alpha1.ToolFio {
		return recognizeFio(output)
	}
	if match := processCounts[tool]; match != nil {
		if groups := match.FindSubmatch(output); groups != nil {
			found = append(found, setting{"processes", string(groups[1])})
		}
	}
	pattern := commandLines[tool]
	if pattern == nil {
		return found, nil, nil
	}
	groups := pattern.FindSubmatch(output)
	if groups == nil {
		return found, nil, nil
	}
	line := strings.TrimSpace(string(groups[1]))
	if text := ""; bytes.HasPrefix(bytes.TrimSpace(groups[0]), []byte(`"`)) { // a member of a JSON document
		if json.Unmarshal([]byte(strings.TrimSuffix(line, ",")), &text) == nil {
			line = text
		}
	}
	command = argumentsOf(line)
	options, unknown := settings(optionsOf[tool], command[min(1, len(command)):])
	return append(found, options...), command, unknown
}

// argumentsOf splits a command line. Versions of mdtest and IOR put each argument in quotes, single or double.
func argumentsOf(line string) []string {
	var out []string
	var word strings.Builder
	quote, inside := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, inside = r, true
		case quote == 0 && unicode.IsSpace(r):
			if inside {
				out = append(out, word.String())
			}
			word.Reset()
			inside = false
		default:
			_, _ = word.WriteRune(r) // a Builder never fails
			inside = true
		}
	}
	if inside {
		out = append(out, word.String())
	}
	return out
}

// settings reads a command line as getopt does: letters may be joined, and an argument may directly follow its letter.
func settings(known map[string]option, args []string) (found []setting, unknown []string) {
	add := func(o option, value string) {
		if o.fixed != "" {
			value = o.fixed
		}
		if word, has := o.words[value]; has {
			value = word
		}
		i := slices.IndexFunc(found, func(s setting) bool { return s.field == o.field })
		switch {
		case o.field == "":
		case i >= 0 && o.list:
			found[i].value += "," + value
		case i >= 0:
			found[i].value = value
		default:
			found = append(found, setting{o.field, value})
		}
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if o, is := known[arg]; is && len(arg) != 2 {
			if o.argument {
				i++
			}
			add(o, at(args, i))
			continue
		}
		if len(arg) < 2 || arg[0] != '-' || arg[1] == '-' || arg[1] == '+' {
			unknown = append(unknown, arg)
			continue
		}
		for j := 1; j < len(arg); j++ {
			o, is := known["-"+arg[j:j+1]]
			if !is {
				unknown = append(unknown, "-"+arg[j:])
				break
			}
			if !o.argument {
				add(o, "")
				continue
			}
			value := strings.TrimPrefix(arg[j+1:], "=")
			if value == "" {
				i++
				value = at(args, i)
			}
			add(o, value)
			break
		}
	}
	return found, unknown
}

// at returns an argument, empty after the last one.
func at(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// fioFields has the options of fio (fio.readthedocs.io) with a field in the spec.
var fioFields = map[string]setting{
	"rw": {field: "fio.mode"}, "rwmixread": {field: "fio.readPercent"}, "bs": {field: "fio.blockSize"}, "size": {field: "fio.fileSize"},
	"ioengine": {field: "fio.engine"}, "iodepth": {field: "fio.queueDepth"}, "numjobs": {field: "processes"},
	"runtime": {field: "fio.runtimeSeconds"}, "ramp_time": {field: "fio.rampSeconds"},
	"direct": {field: "fio.directIO", value: yes}, "end_fsync": {field: "fio.fsyncOnClose", value: yes},
}

// recognizeFio reads the options that fio repeats in its report. Several jobs may contradict each other; then none of their options sets a
// field.
func recognizeFio(output []byte) (found []setting, command, unknown []string) {
	start := fioReport.FindIndex(output)
	if start == nil {
		return nil, nil, nil // the parser reports the error
	}
	var report struct {
		Global map[string]string `json:"global options"`
		Jobs   []struct {
			Options map[string]string `json:"job options"`
		} `json:"jobs"`
	}
	if _, err := benchmarks.BoundJSON(output[start[0]:], maxFioValues); err != nil {
		return nil, nil, nil
	}
	if json.NewDecoder(bytes.NewReader(output[start[0]:])).Decode(&report) != nil || len(report.Jobs) == 0 {
		return nil, nil, nil
	}
	all := maps.Clone(report.Global)
	if all == nil {
		all = map[string]string{}
	}
	if len(report.Jobs) == 1 {
		maps.Copy(all, report.Jobs[0].Options)
	}
	names := slices.Sorted(maps.Keys(all))
	command = []string{"fio"}
	for _, name := range names {
		command = append(command, fmt.Sprintf("--%s=%s", name, all[name]))
		f, known := fioFields[name]
		switch {
		case known && f.value != "":
			if all[name] != "0" {
				found = append(found, f)
			}
		case known:
			found = append(found, setting{f.field, strings.TrimSuffix(strings.ToLower(all[name]), "b")})
		case !slices.Contains([]string{"name", "directory", "filename", "group_reporting", "time_based", "thread"}, name):
			unknown = append(unknown, fmt.Sprintf("--%s=%s", name, all[name]))
		}
	}
	if len(report.Jobs) > 1 {
		for i, job := range report.Jobs {
			for _, name := range slices.Sorted(maps.Keys(job.Options)) {
				command = append(command, fmt.Sprintf("--%s=%s", name, job.Options[name]))
				unknown = append(unknown, fmt.Sprintf("--%s=%s of job %d", name, job.Options[name], i+1))
			}
		}
		const most = 64
		command, unknown = command[:min(len(command), most)], unknown[:min(len(unknown), most)]
	}
	return found, command, unknown
}

// fioReport is the line with which fio's JSON begins.
var fioReport = regexp.MustCompile(`(?m)^\s*\{`)

// maxFioValues bounds the report of fio, as its parser does.
const maxFioValues = 1 << 17
