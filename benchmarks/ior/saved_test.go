package ior_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/ior"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

// Each case is a saved output with some texts replaced, in pairs. refused is a part of the error, and read the first sample otherwise.
func TestASavedOutputIsReadOnlyIfItIsWholeAndItsNumbersAgree(t *testing.T) {
	const (
		writeRow  = "503.50     260.89     376.42      99.38     503.50     260.89     376.42      99.38"
		asIs      = "write 376.4200 MiB/s (3: 260.8900 to 503.5000, 121.7151)"
		ofResults = "write 376.4167 MiB/s (3: 260.8900 to 503.5000, 121.7172)"
		finished  = "Finished            : Sat Nov 21 18:36:55 2026\n"
		last      = "0.000421   2   \n"
		command   = "Command line        : /usr/bin/ior -a POSIX -b 4m -t 1m -s 1 -i 3 -w -r -F -e"
		status    = command + " -O stoneWallingStatusFile=/x"
		short     = last + "WARNING: Expected aggregate file size       = 8\n"
		ofShared  = "write 397.1000 MiB/s"
		ofReads   = "read 20082.5000 MiB/s (2: 18177.0000 to 21988.0000, 2694.7839)"
		ofJSON    = "write 428.2633 MiB/s"
		read2     = "read      19000      20262      0.000083    4096       1024.00    0.000024   0.000395   0.000064   0.000421   2   \n"
	)
	// row is the row of writes with one of its numbers replaced.
	row := func(place int, number string) []string {
		fields := strings.Fields(writeRow)
		fields[place] = number
		return []string{writeRow, strings.Join(fields, " ")}
	}
	with := func(change func(*v1alpha1.BenchmarkRunSpec)) *v1alpha1.BenchmarkRunSpec {
		spec := own.DeepCopy()
		change(spec)
		return spec
	}
	for name, c := range map[string]struct {
		file    string
		spec    *v1alpha1.BenchmarkRunSpec
		edits   []string
		again   int // so often is a text replaced in all places
		cut     string
		read    string
		refused string
	}{
		"as it is": {read: asIs},
		// Numbers that are rounded may differ in their last digit, and no further.
		"its highest, rounded":           {edits: row(0, "503.51"), read: "write 376.4200 MiB/s (3: 260.8900 to 503.5100, 121.7151)"},
		"another highest":                {edits: row(0, "503.53"), refused: "the summary of write contradicts its results: Max 503.53"},
		"another lowest":                 {edits: row(1, "260.86"), refused: "the summary of write contradicts its results: Max 503.50, Min 260.86"},
		"another mean":                   {edits: row(2, "376.45"), refused: "Min 260.89 and Mean 376.45"},
		"another deviation":              {edits: row(3, "10.00"), refused: "99.38 OPs of 1048576 bytes are not 10.00 MiB/s"},
		"another highest of transfers":   {edits: row(4, "503.55"), refused: "503.55 OPs of 1048576 bytes are not 503.50 MiB/s"},
		"another lowest of transfers":    {edits: row(5, "260.80"), refused: "260.80 OPs of"},
		"another mean of transfers":      {edits: row(6, "376.50"), refused: "376.50 OPs of"},
		"another deviation of transfers": {edits: row(7, "99.50"), refused: "99.50 OPs of"},
		"another time of one iteration":  {file: "4.0.0-shared.txt", edits: []string{"    0.04029 ", "    0.05029 "}, refused: "MiB in 0.05029 s are not 397.10 MiB/s"},
		"another total of a result":      {edits: []string{"0.030664", "0.060664"}, refused: "the numbers of the result contradict each other: 260.89 MiB/s in 0.060664 s are 15.8 MiB, and 272.15 IOPS of 1024 KiB in 0.029396 s are 8.0"},
		"a result that is no number":     {edits: []string{"0.030664", "3.0e-2"}, refused: `"3.0e-2" is no number of the form 123.45`},
		"a result without a number":      {edits: []string{"0.030664", "NA"}, read: asIs},
		"a result without a column":      {edits: []string{"0.030664", ""}, refused: "a result of 11 columns"},
		"fewer iterations than results":  {edits: []string{"2   2    3   1", "2   2    2   1"}, refused: "the summary of write is of 2 iterations, but there are the results of 3"},
		"iterations that are no number":  {edits: []string{"2   2    3   1", "2   2    x   1"}, refused: `reps of the summary is "x", which is no number`},
		"no row of reads":                {edits: []string{"\nread        19000.24", "\n"}, refused: "instead of a line of the summary"},
		"no row of reads at all":         {cut: "\nread        19000.24", edits: []string{"\nSummary", "\nSummary"}, refused: "before its last line"},
		"an unknown row":                 {edits: []string{"\nread        19000.24", "\nfoo         19000.24"}, refused: "the summary of foo is of 3 iterations, but there are the results of 0"},
		"no titles of the summary":       {cut: "Operation   Max", refused: "before the titles of the summary"},
		"other titles":                   {edits: []string{"Operation   Max(MiB)", "Operation   Most(MiB)"}, refused: "instead of the titles of the summary"},
		"titles of another table":        {edits: []string{"Operation   Max(MiB)", "Op   Max(MiB)"}, refused: "instead of the titles of the summary"},
		"few titles":                     {edits: []string{" Test# #Tasks tPN reps fPP reord reordoff reordrand seed", ""}, refused: "instead of the titles of the summary"},
		"no end":                         {cut: finished, refused: `before its last line ("Finished")`},
		"a verbose line in the summary":  {edits: []string{finished, "Using Time Stamp 1 (0x1) for Data Signature\n" + finished}, read: asIs},

		"nothing behind the results, by the IO500 application": {cut: "\nSummary of", edits: []string{command, status}, read: ofResults},
		"the same of a usual command line":                     {cut: "\nSummary of", refused: "before the summary"},
		"the same without the last result":                     {cut: read2, edits: []string{command, status}, refused: "before the summary"},
		"the same of no number of repetitions":                 {cut: "\nSummary of", edits: []string{command, status, "repetitions         : 3", "repetitions         : x"}, refused: "before the summary"},
		"the same of no repetition":                            {cut: "\nSummary of", edits: []string{command, status, "repetitions         : 3", "repetitions         : 0"}, refused: "before the summary"},
		"the same of no operation":                             {cut: "\nSummary of", edits: []string{command, strings.Replace(status, " -w -r", "", 1)}, refused: "before the summary"},
		"the same of one operation":                            {cut: "\nSummary of", edits: []string{command, strings.Replace(status, " -w", "", 1)}, read: ofResults},
		"the same with the highest result":                     {cut: "\nSummary of", edits: []string{command, status, last, last + "Max Write: 503.50 MiB/sec (527.96 MB/sec)\n"}, refused: "before the summary"},
		"an end without a summary":                             {cut: "\nSummary of", edits: []string{last, last + finished}, read: ofResults},
		"an end without a summary, of another point": {cut: "\nSummary of", edits: []string{last, last + finished}, refused: "tasks is 2, but the point asked for 4",
			spec: with(func(s *v1alpha1.BenchmarkRunSpec) { s.Processes = 4 })},
		"an end without a summary, of one file": {cut: "\nSummary of", edits: []string{last, last + finished}, refused: "file per process is true",
			spec: with(func(s *v1alpha1.BenchmarkRunSpec) { s.IOR.FilePerProcess = false })},
		"an end without a summary, of its point":  {cut: "\nSummary of", edits: []string{last, last + finished}, spec: own, read: ofResults},
		"an end without a summary, of more turns": {cut: "\nSummary of", edits: []string{last, last + finished, "repetitions         : 3", "repetitions         : 4"}, refused: "there are 3 results of write, and 4 repetitions were asked for"},
		"an end without a result":                 {cut: "write     260.89", edits: []string{"----\nwrite     260.89", "----\n" + finished + "write     260.89"}, refused: "instead of the result of an iteration"},

		"its highest result":              {edits: []string{last, last + "Max Write: 503.50 MiB/sec (527.96 MB/sec)\n"}, read: asIs},
		"its highest result, in vain":     {edits: []string{last, last + "Max Write: 503.50 MiB/sec (528.96 MB/sec)\n"}, refused: "503.50 MiB/s are not 528.96 MB/s"},
		"the highest result of another":   {edits: []string{last, last + "Max Write: 600.00 MiB/sec (629.15 MB/sec)\n"}, refused: "the highest of write is 600.00 MiB/s in one place and 503.50 in another"},
		"a highest result of two points":  {edits: []string{last, last + "Max Write: 5.0.0 MiB/sec (527.96 MB/sec)\n"}, refused: "are not"},
		"a highest result in two forms":   {edits: []string{last, last + "Max Write: 503.50 MiB/sec (5.7.9 MB/sec)\n"}, refused: "are not"},
		"a ruler behind the first result": {edits: []string{last, last + "------    ---------\n"}, refused: "instead of the result of an iteration"},

		"a second run":                 {edits: []string{finished, finished + "IOR-4.0.0: MPI Coordinated Test of Parallel I/O\n"}, refused: "a second run of IOR begins; keep one run in each file"},
		"a result behind the end":      {edits: []string{finished, finished + read2}, refused: "instead of the end of the output"},
		"a table behind the end":       {edits: []string{finished, finished + "access    bw(MiB/s)  IOPS\n"}, refused: "instead of the end of the output"},
		"a summary behind the end":     {edits: []string{finished, finished + "Summary of all tests:\n"}, refused: "instead of the end of the output"},
		"titles behind the end":        {edits: []string{finished, finished + "Operation   Max(MiB)\n"}, refused: "instead of the end of the output"},
		"another end":                  {edits: []string{finished, finished + finished}, refused: "instead of the end of the output"},
		"a highest behind the end":     {edits: []string{finished, finished + "Max Read:  1.00 MiB/sec (1.05 MB/sec)\n"}, refused: "instead of the end of the output"},
		"a ruler behind the end":       {edits: []string{finished, finished + "------    ---------\n"}, refused: "instead of the end of the output"},
		"something else behind it":     {edits: []string{finished, finished + "the job has ended\n"}, read: asIs},
		"something else before it":     {edits: []string{"IOR-4.0.0: MPI", "the job has begun\nIOR-4.0.0: MPI"}, read: asIs},
		"a table before it":            {edits: []string{"IOR-4.0.0: MPI", "access    bw(MiB/s)  IOPS\nIOR-4.0.0: MPI"}, refused: "instead of what IOR is about to run"},
		"an end before it":             {edits: []string{"IOR-4.0.0: MPI", finished + "IOR-4.0.0: MPI"}, refused: "instead of what IOR is about to run"},
		"titles before it":             {edits: []string{"IOR-4.0.0: MPI", "Operation   Max(MiB)\nIOR-4.0.0: MPI"}, refused: "instead of what IOR is about to run"},
		"a summary before it":          {edits: []string{"IOR-4.0.0: MPI", "Summary of all tests:\nIOR-4.0.0: MPI"}, refused: "instead of what IOR is about to run"},
		"a failure before it":          {edits: []string{"IOR-4.0.0: MPI", "ERROR: no\nIOR-4.0.0: MPI"}, refused: "has not ended well"},
		"a banner in its head":         {edits: []string{"\nMachine", "\nIOR-4.0.0: MPI Coordinated Test of Parallel I/O\nMachine"}, refused: "a second run of IOR begins, and the first has no results"},
		"a fact without a colon":       {edits: []string{"\nMachine  ", "\nMachine client1\nMachine  "}, refused: "instead of what IOR is about to run"},
		"an error as a fact":           {edits: []string{"\nMachine  ", "\nERROR: no\nMachine  "}, refused: "instead of what IOR is about to run"},
		"a warning as a fact":          {edits: []string{"\nMachine  ", "\nWARNING: no\nMachine  "}, refused: "instead of what IOR is about to run"},
		"a harmless warning":           {edits: []string{"\nMachine  ", "\nWARNING: Backend returned error during statfs\nMachine  "}, read: asIs},
		"many facts":                   {edits: []string{"\nMachine  ", strings.Repeat("\nMachine: x", 200) + "\nMachine  "}, read: asIs},
		"no results":                   {cut: "access    bw", refused: "before the results"},
		"a short transfer of its time": {edits: []string{"\naggregate", "\nstonewallingTime    : 60\naggregate", last, short}, read: asIs},
		"the same, by its options":     {edits: []string{command, command + " -D 60", last, short}, read: asIs},
		"the same, by its status":      {edits: []string{command, status, last, short}, read: asIs},
		"the same, verbosely":          {edits: []string{"\naggregate", "\nUsing stonewalling = 60 second(s)\naggregate", last, short}, read: asIs},
		"a short transfer of no time":  {edits: []string{"\naggregate", "\nstonewallingTime    : 0\naggregate", last, short}, refused: "instead of the result of an iteration"},

		"one result of no time":                {file: "4.0.0-shared.txt", edits: []string{"    0.04029 ", "         NA "}, read: ofShared},
		"one result of no bytes":               {file: "4.0.0-shared.txt", edits: []string{"      16.0 POSIX", "        NA POSIX"}, read: ofShared},
		"a time that differs by less":          {file: "4.0.0-shared.txt", edits: []string{"    0.00143 ", "    0.00144 "}, read: ofShared},
		"a time that differs by more":          {file: "4.0.0-shared.txt", edits: []string{"    0.04029 ", "    0.04054 "}, refused: "MiB in 0.04054 s are not 397.10 MiB/s"},
		"a result in no measurable time":       {edits: []string{"0.030664", "0.000000"}, read: asIs},
		"transfers in no measurable time":      {edits: []string{"0.029396", "0.000000"}, read: asIs},
		"one repetition, by the application":   {file: "4.0.0-shared.txt", cut: "\nSummary of", edits: []string{" -i 1", " -i 1 -O stoneWallingStatusFile=/x"}, read: ofShared},
		"an end without a summary, of reads":   {file: "4.0.0-step2-read.txt", cut: "\nSummary of", edits: []string{"\nSummary", "\n" + finished + "\nSummary"}, read: ofReads},
		"no titles of the transfers":           {edits: []string{"Max(OPs)   Min(OPs)", "Max(OPs)   Low(OPs)"}, refused: "the summary has no columns Max(OPs), Min(OPs), Mean(OPs), StdDev"},
		"the titles of the transfers at last":  {edits: []string{"Max(OPs)", "X", "API RefNum", "API Max(OPs)"}, refused: "the summary has no columns Max(OPs)"},
		"no titles of the bandwidth":           {edits: []string{"Min(MiB)", "Low(MiB)"}, refused: "the summary has no columns Max(MiB), Min(MiB), Mean(MiB), StdDev"},
		"JSON of an unknown transfer":          {file: "4.0.0-json-i1.txt", edits: []string{`"transferSize": 262144`, `"transferSize": 0`}, again: 3, read: ofJSON},
		"JSON of another bandwidth":            {file: "4.0.0-json-i1.txt", edits: []string{": 428.2633", ": 428.2783"}, again: 9, refused: "1713.05 OPs of 262144 bytes are not 428.28 MiB/s"},
		"JSON of nothing that was transferred": {file: "4.0.0-json-i1.txt", edits: []string{": 428.2633", ": 0.0", ": 1713.0533", ": 0.0"}, again: 9, refused: "the lowest of the numbers in MiB/s is 0"},
		"JSON of 1000 iterations":              {file: "4.0.0-json-i1.txt", edits: []string{"\n    \"repetitions\": 1,", "\n    \"repetitions\": 1000,"}, again: 9, read: "write 428.2633 MiB/s (1000: 428.2633 to 428.2633, 0.0000)"},
		"JSON with a line that breaks":         {file: "4.0.0-json-i1.txt", edits: []string{`"operation": "read",`, `"operation": "read`}, refused: `found "\"operation\": \"read" instead of JSON`},
		"JSON of no iteration":                 {file: "4.0.0-json-i1.txt", edits: []string{"\n    \"repetitions\": 1,", "\n    \"repetitions\": 0,"}, refused: "0 iterations can't be"},
		"JSON of too many":                     {file: "4.0.0-json-i1.txt", edits: []string{"\n    \"repetitions\": 1,", "\n    \"repetitions\": 1001,"}, refused: "1001 iterations can't be"},
		"JSON of an operation twice":           {file: "4.0.0-json-i1.txt", edits: []string{`"operation": "read"`, `"operation": "write"`}, refused: "the summary holds an operation that IOR does not print there, or twice"},
		"JSON of another operation":            {file: "4.0.0-json-i1.txt", edits: []string{`"operation": "read"`, `"operation": "remove"`}, refused: "the summary holds an operation"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file := c.file
			if file == "" {
				file = "4.0.0-fpp.txt"
			}
			text := string(tooltest.Output(t, file))
			for i := 0; i < len(c.edits); i += 2 {
				g.Expect(text).To(ContainSubstring(c.edits[i]))
				text = strings.Replace(text, c.edits[i], c.edits[i+1], max(c.again, 1))
			}
			if c.cut != "" {
				g.Expect(text).To(ContainSubstring(c.cut))
				text, _, _ = strings.Cut(text, c.cut)
				text += "\n"
			}
			spec, p := &v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolIOR}, benchmarks.Point{}
			if c.spec != nil {
				spec, p = c.spec, point(t, c.spec)
			}
			report, err := ior.Tool{}.Parse(spec, p, 0, []byte(text))
			if c.refused != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.refused)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(describe(report.Samples)[0]).To(Equal(c.read))
		})
	}
}

func TestALongWordOfTheSummaryIsQuotedShort(t *testing.T) {
	g := NewWithT(t)
	const row = "\nwrite         503.50"
	output := string(tooltest.Output(t, "4.0.0-fpp.txt"))
	g.Expect(output).To(ContainSubstring(row))
	for _, filler := range []string{"\xff", "x"} {
		_, err := ior.Tool{}.Parse(nil, benchmarks.Point{}, 0, []byte(strings.Replace(output, row, "\nwrite"+strings.Repeat(filler, 3<<10)+"         503.50", 1)))
		g.Expect(err).To(HaveOccurred())
		g.Expect(len(err.Error())).To(BeNumerically("<=", 1024))
	}
}

func TestAJSONOfMoreThan4MiBIsNotRead(t *testing.T) {
	const most = 4 << 20
	output := "{\n" + strings.Repeat(`"`+strings.Repeat(" ", 1021)+"1\n", most/1024)
	_, err := ior.Tool{}.Parse(&v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolIOR}, benchmarks.Point{}, 0, []byte(output))
	NewWithT(t).Expect(err).To(MatchError("line 1: the JSON has more than 4 MiB, which no report of IOR has"))
}
