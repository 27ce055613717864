// Package postmark measures a filesystem with PostMark, which handles small files like a mail server: each process runs its own PostMark.
// Its commands are those in the help of version 1.51 (Debian's postmark 1.53); its report is described in NetApp's TR-3022.
package postmark

import "parallelfs.dev/operator/api/v1alpha1"

// Tool is the PostMark benchmark.
type Tool struct{}

// Name returns "postmark".
func (Tool) Name() v1alpha1.BenchmarkTool { return v1alpha1.ToolPostmark }
