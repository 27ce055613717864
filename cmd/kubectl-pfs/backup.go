package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/api/v1alpha1"
)

func (a *app) backupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "backup", Short: "Backups of metadata: list, now",
		Long: "The operator backs up the metadata of a FileSystem at each place of spec.backups, and reads each backup back.",
		RunE: groupOnly, Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(a.backupListCommand(), a.backupNowCommand())
	return cmd
}

// placeOf describes the place of a backup.
func placeOf(b *v1alpha1.BackupStatus) string {
	switch {
	case b.PersistentVolumeClaim != "":
		return "claim " + b.PersistentVolumeClaim
	case b.ObjectStore != "":
		return "bucket " + b.ObjectStore
	}
	return "node " + b.Node
}

// behindText describes how far a proven copy was behind; empty if this is unknown.
func behindText(c *v1alpha1.MetadataCopyStatus) string {
	if c.Behind == nil || c.Proven == nil {
		return ""
	}
	return fmt.Sprintf("It was read back at %s, and was %d changes behind.", c.Proven.UTC().Format(time.RFC3339), *c.Behind)
}

// backupsText shows the backups of a FileSystem.
func backupsText(fs *v1alpha1.FileSystem) string {
	var out strings.Builder
	out.WriteString(wrapped("", "  ", cmp.Or(saying(fs.Status.Conditions, v1alpha1.ConditionBackedUp), "The operator has not reported anything about backups yet.")))
	if len(fs.Status.Backups) > 0 {
		var rows [][]string
		for i := range fs.Status.Backups {
			b := &fs.Status.Backups[i]
			at, version, size, why := "-", "-", "-", b.Message
			if b.Time != nil {
				at = b.Time.UTC().Format(time.RFC3339)
			}
			if b.Version != 0 {
				version = fmt.Sprint(b.Version)
			}
			if b.SizeBytes != 0 {
				size = bytesText(b.SizeBytes)
			}
			if b.Retry != nil {
				why = "next attempt " + b.Retry.UTC().Format(time.RFC3339) + ". " + why
			}
			rows = append(rows, []string{b.Name, placeOf(b), string(b.Result), at, version, size, cmp.Or(why, "-")})
		}
		out.WriteString(table([]column{{"BACKUP", 15}, {"PLACE", 24}, {"RESULT", 10}, {"METADATA OF", 20}, {"VERSION", 12}, {"SIZE", 9},
			{"WHY", 0}}, rows))
	}
	for i := range fs.Status.MetadataCopies {
		c := &fs.Status.MetadataCopies[i]
		out.WriteString(wrapped("", "  ", fmt.Sprintf("The running copy on node %s is %s since %s. %s", c.Node, strings.ToLower(string(c.Result)),
			c.Since.UTC().Format(time.RFC3339), cmp.Or(c.Message, behindText(c)))))
	}
	if asked := fs.Status.BackupAsked; asked != nil {
		out.WriteString(wrapped("", "  ", fmt.Sprintf("A backup was asked for at %s (%s).",
			asked.Since.UTC().Format(time.RFC3339), asked.Request)))
	}
	return out.String()
}

func (a *app) backupListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list FILESYSTEM",
		Short:   "The newest backups at each place, and whether they were read back",
		Example: `  kubectl pfs backup list scratch`,
		Args:    exactly("FILESYSTEM"),
		RunE:    a.prints(backupsText),
	}
}

func (a *app) backupNowCommand() *cobra.Command {
	dry, request := false, ""
	cmd := &cobra.Command{
		Use:   "now FILESYSTEM",
		Short: "Ask for a backup now, at each place",
		Long: `now asks for a backup at each place of spec.backups (annotation ` + v1alpha1.AnnotationBackUp + `). It does not wait for it: see
"kubectl pfs backup list". --request names the request; each other name asks for another backup.`,
		Example: `  kubectl pfs backup now scratch
  kubectl pfs backup now scratch --request before-the-move`,
		Args: exactly("FILESYSTEM"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(a.cluster)
			if err != nil {
				return err
			}
			fs, err := c.fileSystem(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if fs.Spec.Backups == nil {
				return fmt.Errorf("the FileSystem %s has no spec.backups, so there is no place for a backup; set it first. Nothing was changed", fs.Name)
			}
			word := cmp.Or(request, "now-"+a.now().UTC().Format("20060102-150405"))
			if len(word) > mostRequest {
				return usage(fmt.Errorf("--request has at most %d characters", mostRequest))
			}
			if fs.Annotations[v1alpha1.AnnotationBackUp] == word {
				return errors.New("this backup was asked for already; use another name with --request. Nothing was changed")
			}
			return c.say(cmd, fs, "FileSystem", words{v1alpha1.AnnotationBackUp: &word}, dry)
		},
	}
	cmd.Flags().StringVar(&request, "request", "", "the name of the request (default: now- and the time)")
	dryRun(cmd, &dry)
	return cmd
}

// mostRequest is the bound of status.backupAsked.request.
const mostRequest = 64
