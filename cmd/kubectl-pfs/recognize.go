package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// option is what one option of a tool's command line means to a spec.
type option struct {
	// field of the spec, as --set names it; empty for one that says nothing of what was measured.
	field string
	// argument is true for an option that takes one; fixed is the value of one that does not.
	argument bool
	fixed    string
	// list adds the value to those of a field that is a list.
	list bool
	// words are the values of the field for arguments that the tool writes otherwise.
	words map[string]string
}

// setting is one field of a spec and its value, as --set writes it.
type setting struct{ field, value string }

var yes = "true"

// optionsOf are those of the tools that print their command line: mdtest.1 and options.c of github.com/hpc/ior, and iozone.1.
var optionsOf = map[v1alpha1.BenchmarkTool]map[string]option{
	v1alpha1.ToolMdtest: {
		"-d": {argument: true}, "-v": {}, "-i": {field: "mdtest.iterations", argument: true},
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

// commandLines find the command line in an output, and processCounts the number of processes.
var (
	commandLines = map[v1alpha1.BenchmarkTool]*regexp.Regexp{
		v1alpha1.ToolMdtest: regexp.MustCompile(`(?m)^Command line used: (.*)$`),
		v1alpha1.ToolIOR:    regexp.MustCompile(`(?m)^\s*"?Command line"?\s*: "?([^"\n]*)"?,?\s*$`),
		v1alpha1.ToolIOzone: regexp.MustCompile(`(?m)^\s*Command line used: (.*)$`),
	}
	processCounts = map[v1alpha1.BenchmarkTool]*regexp.Regexp{
		v1alpha1.ToolMdtest: regexp.MustCompile(`(?m)^mdtest-\S+ was launched with (\d+) total task`),
		v1alpha1.ToolIOR:    regexp.MustCompile(`(?m)^(?:tasks\s*: |\s*"(?:numTasks|tasks)": )(\d+)`),
	}
)

// recognize reads from an output how the tool was called. Unknown are the options that no field stands for.
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
	command = strings.Fields(strings.ReplaceAll(string(groups[1]), "'", ""))
	options, unknown := settings(optionsOf[tool], command[min(1, len(command)):])
	return append(found, options...), command, unknown
}

// settings reads a command line as getopt does: letters may be joined, and arguments may stand behind their letter.
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
			value := arg[j+1:]
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

// at is an argument, empty behind the last.
func at(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// fioFields are the options of fio (fio.readthedocs.io) that the spec has fields for.
var fioFields = map[string]setting{
	"rw": {field: "fio.mode"}, "rwmixread": {field: "fio.readPercent"}, "bs": {field: "fio.blockSize"}, "size": {field: "fio.fileSize"},
	"ioengine": {field: "fio.engine"}, "iodepth": {field: "fio.queueDepth"}, "numjobs": {field: "processes"},
	"runtime": {field: "fio.runtimeSeconds"}, "ramp_time": {field: "fio.rampSeconds"},
	"direct": {field: "fio.directIO", value: yes}, "end_fsync": {field: "fio.fsyncOnClose", value: yes},
}

// recognizeFio reads the options that fio repeats in its report.
func recognizeFio(output []byte) (found []setting, command, unknown []string) {
	var report struct {
		Global map[string]string `json:"global options"`
		Jobs   []struct {
			Options map[string]string `json:"job options"`
		} `json:"jobs"`
	}
	if json.Unmarshal(output, &report) != nil || len(report.Jobs) == 0 {
		return nil, nil, nil // the parser says what is wrong with it
	}
	all := map[string]string{}
	for _, options := range []map[string]string{report.Global, report.Jobs[0].Options} {
		maps.Copy(all, options)
	}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
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
			found = append(found, setting{f.field, strings.ToLower(all[name])})
		case !slices.Contains([]string{"name", "directory", "filename", "group_reporting", "time_based", "thread"}, name):
			unknown = append(unknown, "--"+name)
		}
	}
	return found, command, unknown
}
