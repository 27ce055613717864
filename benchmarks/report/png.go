package report

import (
	"errors"
	"fmt"
	"io"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// mostPictures limits the charts in one PNG, so that programs can open it.
const mostPictures = 40

// PNG writes the charts as one picture, in two columns if there are more than three.
func (r *Report) PNG(w io.Writer) error {
	var all []chart
	for _, s := range r.sections {
		all = append(all, s.charts...)
	}
	if len(all) == 0 {
		return errors.New("there is no chart to draw, because no point has a result yet")
	}
	title := r.kind + " " + r.title
	if len(all) > mostPictures {
		title += fmt.Sprintf(" (the first %d of %d charts)", mostPictures, len(all))
		all = all[:mostPictures]
	}
	columns := 1
	if len(all) > 3 {
		columns = 2
	}
	rows := (len(all) + columns - 1) / columns
	const head, margin, titled vg.Length = 34, 10, 28
	width := vg.Length(columns)*(chartWidth+margin) + margin
	height := vg.Length(rows)*(chartHeight+titled+margin) + margin + head
	canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(96), vgimg.UseBackgroundColor(white))
	whole := draw.New(canvas)
	name := writing(17, ink)
	name.Font.Weight = bold
	name.YAlign = draw.YTop
	whole.FillText(name, vg.Point{X: margin + 6, Y: height - margin}, title)
	for i := range all {
		left := margin + vg.Length(i%columns)*(chartWidth+margin)
		top := height - head - margin - vg.Length(i/columns)*(chartHeight+titled+margin)
		part := draw.Canvas{Canvas: canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: left, Y: top - chartHeight - titled}, Max: vg.Point{X: left + chartWidth, Y: top},
		}}
		all[i].draw(part, true)
	}
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}
