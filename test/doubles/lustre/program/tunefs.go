package program

import (
	"fmt"
	"io"
	"os/exec"
	"strings"

	"parallelfs.dev/operator/test/doubles/lustre/mountdata"
)

// Tunefs is tunefs.lustre.
func Tunefs(arguments []string, stdout, stderr io.Writer) int {
	r := &run{name: "tunefs.lustre", stdout: stdout, stderr: stderr}
	options, rest, wrong := r.split(arguments, ofTunefs)
	r.complainOf(wrong)
	if code, ends := r.early(options, rest); ends {
		return code
	}
	data, label, found, err := mountdata.Of(r.device)
	r.say("checking for existing Lustre data: %s\n", map[bool]string{true: "found", false: "not found"}[found])
	if err != nil || !found {
		r.fatal("Device %s has not been formatted with mkfs.lustre", r.device)
		return r.exit(eNoDev)
	}
	r.read(data, label)
	r.show("Read previous values")
	before := r.data
	if len(wrong) > 0 {
		r.complainOf(wrong)
		return r.exit(eInval)
	}
	if r.eraseAll {
		r.data.Parameters, r.data.Flags = "", r.data.Flags|mountdata.Update
	}
	for _, o := range options {
		if code := r.apply(o); code != 0 {
			return r.exit(code)
		}
	}
	if r.data == before {
		r.say("exiting because there is no change.\n")
		return 0
	}
	r.knowsMGS = r.knowsMGS || r.dryRun || r.eraseAll
	if code := r.complete(); code != 0 {
		return r.exit(code)
	}
	r.show("Permanent disk data")
	if r.dryRun {
		fmt.Fprintln(stdout, "exiting before disk write.")
		return 0
	}
	return r.write()
}

// read copies the data of the file and the label. The label determines the state of the target.
func (r *run) read(data mountdata.Data, label string) {
	r.data = data
	r.data.Name = label
	r.data.Flags &^= mountdata.Writeconf | mountdata.FirstTime | mountdata.NoLocalLogs
	r.knowsMGS = strings.Contains(data.Parameters, "mgsnode=")
	at := len(label) - 8
	if at < 0 {
		return
	}
	flag := map[byte]uint32{':': mountdata.FirstTime, '=': mountdata.Writeconf, '+': mountdata.NoLocalLogs}[label[at]]
	if flag != 0 {
		r.data.Name = label[:at] + "-" + label[at+1:]
		r.data.Flags |= flag
	}
}

// write writes the changes; the label only for a writeconf.
func (r *run) write() int {
	if mounted(r.device) {
		r.complain("%s: is currently mounted, exiting without any change\n", r.device)
		return eExist
	}
	if r.data.Flags&mountdata.Writeconf != 0 {
		if output, err := exec.Command("e2label", r.device, r.data.Name).CombinedOutput(); err != nil {
			r.complain("%s\n", output)
			return r.exit(eNoDev)
		}
	}
	return r.save()
}
