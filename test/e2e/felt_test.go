//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
)

// lifeRow is the effect of one kind of disruption on programs, caused by the operator or by hand: the worst of all turns.
type lifeRow struct {
	name, who string
	turns     int
	worst     felt
}

// lifeRows holds those of all stories of `make life`, which run one after the other in one process.
var lifeRows []lifeRow

// feltEntry names the entries of a report that are rows of the table. Stories run in processes of their own.
const feltEntry = "what programs felt, as a row"

// The one table is printed at the end, even after a failure.
var _ = ReportAfterSuite("what programs felt", func(all Report) {
	table := ""
	if len(lifeRows) > 0 {
		table = lifeTable(lifeRows)
	} else if rows := rowsOf(all); len(rows) > 0 {
		table = lifeHead + strings.Join(rows, "")
	}
	if table != "" {
		fmt.Fprintf(os.Stdout, "\nWhat programs felt, the worst of all turns\n\n%s", table)
	}
})

// rowsOf returns the rows that the specs of all processes have left.
func rowsOf(all Report) (rows []string) {
	for _, spec := range all.SpecReports {
		for _, entry := range spec.ReportEntries {
			if entry.Name == feltEntry {
				rows = append(rows, strings.TrimSpace(entry.StringRepresentation())+"\n")
			}
		}
	}
	return rows
}

// wasFelt is a short form of `make life`. The effect of the operator's disruption on programs is a row of the table at the end. No
// operation may have failed, every byte must be as it was written, and no chunk may have been missing; see nothingWasLost for a master that
// restarts.
func wasFelt(name string, out felt, master bool) {
	GinkgoHelper()
	row := lifeRow{name, "operator", 1, out}
	report(feltEntry, lifeLine([]lifeRow{row}, row))
	nothingWasLost(out, master)
	if !master {
		Expect(out.samples).To(BeNumerically(">", 5), "MooseFS was asked for its chunks: %s", out)
	}
}

// byHandRow marks the rows that a person caused, without the operator.
const byHandRow = "by hand"

// nothingWasLost checks what holds for everything that the operator does.
func nothingWasLost(out felt, master bool) {
	GinkgoHelper()
	Expect([]int64{out.errors, out.bytes}).To(Equal([]int64{0, 0}), out.String())
	if !master {
		Expect(out.missing).To(BeZero(), out.String())
	}
	Expect(out.operations).To(BeNumerically(">", 20))
}

// atWorst keeps the worse of each figure.
func (f *felt) atWorst(other felt) {
	f.seconds, f.write, f.read = max(f.seconds, other.seconds), max(f.write, other.write), max(f.read, other.read)
	f.operations, f.errors, f.bytes = f.operations+other.operations, f.errors+other.errors, f.bytes+other.bytes
	f.samples, f.endangered, f.short = f.samples+other.samples, max(f.endangered, other.endangered), max(f.short, other.short)
	f.missing, f.lost = max(f.missing, other.missing), max(f.lost, other.lost)
}

// tolerance is by how much the longest operations of two equal disruptions may differ, because mounts try only every two seconds to find a
// master again (docs/adr/0075).
const tolerance = 2 * time.Second

// longerThanByHand describes by how much the longest write or read was longer than by hand; empty if it was not, and if there is no row by
// hand. compared is true if there is one.
func longerThanByHand(rows []lifeRow, row lifeRow) (longer string, compared bool) {
	at := slices.IndexFunc(rows, func(r lifeRow) bool { return r.name == row.name && r.who == byHandRow })
	if at < 0 || row.who == byHandRow {
		return "", false
	}
	hand := rows[at].worst
	var out []string
	for _, stall := range []struct {
		what             string
		operator, byHand time.Duration
	}{{"write", row.worst.write, hand.write}, {"read", row.worst.read, hand.read}} {
		if stall.operator > stall.byHand+tolerance {
			out = append(out, fmt.Sprintf("%s %.2f s longer", stall.what, (stall.operator-stall.byHand).Seconds()))
		}
	}
	return strings.Join(out, ", "), true
}

// noLongerThanByHand checks that programs waited no longer than by hand, if that was measured too.
func noLongerThanByHand(name string) {
	GinkgoHelper()
	for _, row := range lifeRows {
		if row.name == name {
			longer, _ := longerThanByHand(lifeRows, row)
			Expect(longer).To(BeEmpty(), "%s: the longest operation, beyond a tolerance of %s", name, tolerance)
		}
	}
}

const lifeHead = "| disruption | made | turns | s | longest write s | longest read s | ≤ by hand | errors | bytes that differ | s with endangered chunks | with missing ones |\n" +
	"|---|---|---|---|---|---|---|---|---|---|---|\n"

// lifeTable formats a row for each disruption and its cause.
func lifeTable(rows []lifeRow) string {
	out := lifeHead
	for _, r := range rows {
		out += lifeLine(rows, r)
	}
	return out
}

// lifeLine formats a row of the table. MooseFS is queried once a second, so each answer counts as a second.
func lifeLine(rows []lifeRow, r lifeRow) string {
	endangered, missing := "not asked", "not asked"
	if r.worst.samples > 0 {
		endangered, missing = fmt.Sprintf("%d (at most %d chunks)", r.worst.short, r.worst.endangered), fmt.Sprint(r.worst.lost)
	}
	verdict := ""
	if longer, compared := longerThanByHand(rows, r); compared {
		verdict = cmp.Or(longer, "yes")
	}
	return fmt.Sprintf("| %s | %s | %d | %d | %.2f | %.2f | %s | %d | %d | %s | %s |\n", r.name, r.who, r.turns, r.worst.seconds,
		r.worst.write.Seconds(), r.worst.read.Seconds(), verdict, r.worst.errors, r.worst.bytes, endangered, missing)
}

func TestRowsOfAllProcessesComeIntoOneTable(t *testing.T) {
	g := NewWithT(t)
	operator := lifeRow{"an option changes", "operator", 1, felt{seconds: 41, write: 4 * time.Second, read: time.Second, operations: 300, samples: 40, endangered: 7, short: 3}}
	line := lifeLine([]lifeRow{operator}, operator)
	g.Expect(line).To(Equal("| an option changes | operator | 1 | 41 | 4.00 | 1.00 |  | 0 | 0 | 3 (at most 7 chunks) | 0 |\n"))
	all := Report{SpecReports: types.SpecReports{
		{ReportEntries: types.ReportEntries{{Name: feltEntry, Value: types.WrapEntryValue(line)}, {Name: "another", Value: types.WrapEntryValue("text")}}},
		{ReportEntries: types.ReportEntries{{Name: feltEntry, Value: types.WrapEntryValue("| a node is drained |\n")}}},
	}}
	g.Expect(rowsOf(all)).To(Equal([]string{line, "| a node is drained |\n"}))
	g.Expect(strings.Count(lifeHead, "|")).To(Equal(2*strings.Count(line, "|")), "a row has all columns")

	hand := operator
	hand.who, hand.worst.write = byHandRow, time.Second
	g.Expect(lifeTable([]lifeRow{operator, hand})).To(ContainSubstring("| write 3.00 s longer |"))
	hand.worst.write = 3 * time.Second
	g.Expect(lifeTable([]lifeRow{operator, hand})).To(ContainSubstring("| 1.00 | yes | 0 |"), "what a mount may take to try again is no difference")
}
