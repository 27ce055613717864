// Package health reads what disks report about themselves: SMART of ATA disks, the health log of NVMe disks and the log pages of SCSI
// disks, with smartctl(8) of smartmontools. It only reads, and it never wakes a disk that sleeps.
package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Report is the report of one disk. Values that the disk does not report are nil.
type Report struct {
	// State is empty for a disk that reports nothing. Reasons name what is wrong, the worst first.
	State   v1alpha1.DiskState
	Reasons []string
	// Asleep is true if the disk was in a power mode that a read would have ended. The other fields are empty then.
	Asleep bool

	// Celsius is the current temperature.
	Celsius *float64
	// UsedEndurance is the part of the rated endurance that was used: 1 for all of it. It may be more than 1.
	UsedEndurance *float64
	// MediaErrors counts data that the disk could not recover, and PendingSectors counts sectors that could not be read and were not written
	// since.
	MediaErrors, PendingSectors *float64
}

// Arguments are those of smartctl(8) that read a disk's health: identity, overall health and attributes, in JSON. A disk in standby or
// sleep is not woken, and the exit code is asleep then. NVMe disks ignore the power mode.
func Arguments(device string) []string {
	return []string{"smartctl", "--json=c", "--info", "--health", "--attributes", fmt.Sprintf("--nocheck=standby,%d", asleep), device}
}

const (
	// asleep is no exit code of smartctl(8) otherwise: bit 0 alone is a wrong command line, and bit 1 alone a device that can't be opened.
	asleep = 3
	// notOpened are the bits of the exit code that mean that nothing was read (smartctl(8), "Exit status").
	notOpened = 1<<0 | 1<<1
	// mostOutput bounds the bytes that are parsed. An ATA disk with 30 attributes has 15 KiB.
	mostOutput = 1 << 20
)

// output is what is read of the JSON of smartctl 7.0 and later.
type output struct {
	Smartctl struct {
		ExitStatus int `json:"exit_status"`
		Messages   []struct {
			Text string `json:"string"`
		} `json:"messages"`
	} `json:"smartctl"`
	Support *struct {
		Available bool `json:"available"`
	} `json:"smart_support"`
	Status *struct {
		Passed bool `json:"passed"`
	} `json:"smart_status"`
	Temperature *struct {
		Current float64 `json:"current"`
	} `json:"temperature"`
	// Endurance needs smartctl 7.4 or later, for any protocol.
	Endurance *struct {
		Percent float64 `json:"current_percent"`
	} `json:"endurance_used"`

	NVMe *struct {
		CriticalWarning uint8   `json:"critical_warning"`
		PercentageUsed  float64 `json:"percentage_used"`
		MediaErrors     float64 `json:"media_errors"`
	} `json:"nvme_smart_health_information_log"`

	ATA *struct {
		Table []attribute `json:"table"`
	} `json:"ata_smart_attributes"`

	SCSIEndurance *float64 `json:"scsi_percentage_used_endurance_indicator"`
	SCSIErrors    *struct {
		Read, Write, Verify struct {
			Uncorrected float64 `json:"total_uncorrected_errors"`
		}
	} `json:"scsi_error_counter_log"`
}

// attribute is one SMART attribute of an ATA disk.
type attribute struct {
	ID         int    `json:"id"`
	Name       string `json:"name"`
	WhenFailed string `json:"when_failed"`
	Flags      struct {
		PreFailure bool `json:"prefailure"`
	} `json:"flags"`
	Raw struct {
		Value float64 `json:"value"`
	} `json:"raw"`
}

// The ATA attributes that are read. Their raw values are counts at all vendors (smartmontools, drivedb.h, DEFAULT).
const (
	ataPending       = 197 // Current_Pending_Sector
	ataUncorrectable = 198 // Offline_Uncorrectable
)

// nvmeTooHot is the bit of the critical warnings of an NVMe disk that a colder room clears (NVM Express Base Specification, SMART / Health
// Information log, byte 0).
const nvmeTooHot = 1 << 1

// nvmeWarnings are the other bits: what they say is wrong.
var nvmeWarnings = []struct {
	bit  uint8
	text string
}{
	{1 << 3, "the media is read-only"},
	{1 << 2, "reliability is degraded by media errors or an internal error"},
	{1 << 0, "the spare capacity is below its threshold"},
	{1 << 4, "the backup of its volatile memory has failed"},
	{1 << 5, "its persistent memory region is unreliable"},
}

// Parse reads what smartctl(8) printed for Arguments. It is an error if the disk could not be asked.
func Parse(printed []byte) (Report, error) {
	if len(printed) > mostOutput {
		return Report{}, fmt.Errorf("smartctl printed %d bytes; at most %d are read", len(printed), mostOutput)
	}
	var o output
	if err := json.Unmarshal(printed, &o); err != nil {
		return Report{}, fmt.Errorf("smartctl (smartmontools 7.0 or later is needed) printed no JSON: %w", err)
	}
	switch code := o.Smartctl.ExitStatus; {
	case code == asleep:
		return Report{Asleep: true}, nil
	case code&notOpened != 0:
		if len(o.Smartctl.Messages) > 0 {
			return Report{}, errors.New(o.Smartctl.Messages[0].Text)
		}
		return Report{}, fmt.Errorf("smartctl ended with exit code %d and no message", code)
	case o.Support != nil && !o.Support.Available, o.Status == nil && o.NVMe == nil:
		return Report{}, nil // the disk reports nothing, which is nothing bad
	}
	return o.report(), nil
}

// problems holds the reasons by which a disk fails, and others that a person should look at.
type problems struct{ failing, suspect []string }

func (o output) report() Report {
	r := Report{State: v1alpha1.DiskHealthy}
	if o.Temperature != nil && o.Temperature.Current > 0 {
		r.Celsius = &o.Temperature.Current
	}
	var p problems
	o.nvme(&r, &p)
	o.scsi(&r)
	o.ata(&r, &p)
	if o.Endurance != nil {
		r.UsedEndurance = share(o.Endurance.Percent)
	}
	// An NVMe disk fails the overall check for each critical warning, also when it is only too hot.
	if o.Status != nil && !o.Status.Passed && len(p.failing) == 0 && (o.NVMe == nil || o.NVMe.CriticalWarning == 0) {
		p.failing = append(p.failing, "its overall health check has failed")
	}
	if r.PendingSectors != nil && *r.PendingSectors > 0 {
		p.suspect = append(p.suspect, fmt.Sprintf("%.0f sectors can't be read", *r.PendingSectors))
	}
	if r.UsedEndurance != nil && *r.UsedEndurance >= 1 {
		p.suspect = append(p.suspect, "all of its rated endurance is used")
	}
	switch {
	case len(p.failing) > 0:
		r.State = v1alpha1.DiskFailing
	case len(p.suspect) > 0:
		r.State = v1alpha1.DiskSuspect
	}
	r.Reasons = slices.Concat(p.failing, p.suspect)
	return r
}

func (o output) nvme(r *Report, p *problems) {
	n := o.NVMe
	if n == nil {
		return
	}
	for _, w := range nvmeWarnings {
		if n.CriticalWarning&w.bit != 0 {
			p.failing = append(p.failing, w.text)
		}
	}
	if n.CriticalWarning&nvmeTooHot != 0 {
		p.suspect = append(p.suspect, "its temperature is outside of its limits")
	}
	r.UsedEndurance, r.MediaErrors = share(n.PercentageUsed), &n.MediaErrors
}

func (o output) scsi(r *Report) {
	if s := o.SCSIErrors; s != nil {
		r.MediaErrors = new(s.Read.Uncorrected + s.Write.Uncorrected + s.Verify.Uncorrected)
	}
	if o.SCSIEndurance != nil {
		r.UsedEndurance = share(*o.SCSIEndurance)
	}
}

func (o output) ata(r *Report, p *problems) {
	if o.ATA == nil {
		return
	}
	for _, at := range o.ATA.Table {
		switch {
		case at.Flags.PreFailure && at.WhenFailed == "now":
			p.failing = append(p.failing, fmt.Sprintf("attribute %d (%s) is at its threshold", at.ID, printable(at.Name)))
		case at.ID == ataPending:
			r.PendingSectors = &at.Raw.Value
		case at.ID == ataUncorrectable:
			r.MediaErrors = &at.Raw.Value
		}
	}
}

// share converts percent to a part of 1.
func share(percent float64) *float64 {
	const whole = 100
	return new(percent / whole)
}

// printable replaces all but ASCII letters, digits and underscores: names come from the disk or from smartctl's database.
func printable(name string) string {
	const most = 64
	out := make([]rune, 0, most)
	for _, r := range name {
		switch {
		case len(out) == most:
			return string(out)
		case r >= '0' && r <= '9', r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r == '_', r == '-':
			out = append(out, r)
		default:
			out = append(out, '?')
		}
	}
	return string(out)
}
