package report

import (
	"slices"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const bold = stdfont.WeightBold

// barPlotter draws one bar for each value; several bars at one position are side by side.
type barPlotter struct{ chart *chart }

// Plot draws the bars, their error bars and values, and the baseline as a dashed line across each.
func (b barPlotter) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	count := b.chart.measured()
	slot := x(1) - x(0)
	each := min(slot*0.8/vg.Length(max(count, 1)), 70)
	left := func(l line, at float64) vg.Length {
		return x(at) - each*vg.Length(count)/2 + each*vg.Length(l.style)
	}
	for _, l := range b.chart.lines {
		if l.baseline {
			continue
		}
		for _, v := range l.values {
			from, to := left(l, v.x)+each*0.06, left(l, v.x)+each*0.94
			box := vg.Rectangle{Min: vg.Point{X: from, Y: y(0)}, Max: vg.Point{X: to, Y: y(v.y)}}
			fillBar(&c, l.style, box)
			middle := (from + to) / 2
			if v.high > v.low {
				whisker(&c, ink, middle, y(v.low), y(v.high))
			}
			style := writing(10.5, ink)
			style.XAlign, style.YAlign = draw.XCenter, draw.YBottom
			name := number(v.y)
			if v.best {
				style.Font.Weight = bold
				name = "best " + name
			}
			if v.best || style.Width(name) < each*1.1 {
				halo(&c, style, vg.Point{X: middle, Y: max(y(v.y), y(v.high)) + 2}, name)
			}
		}
	}
	for _, l := range b.chart.lines {
		if !l.baseline {
			continue
		}
		for _, v := range l.values {
			from := left(l, v.x)
			c.StrokeLine2(draw.LineStyle{Color: white, Width: 3.2}, from, y(v.y), from+each, y(v.y))
			c.StrokeLine2(draw.LineStyle{Color: ink, Width: 1.6, Dashes: baselineDashes}, from, y(v.y), from+each, y(v.y))
		}
	}
}

// fillBar fills a bar with the color of a line, and with strokes that distinguish it without color.
func fillBar(c *draw.Canvas, style int, box vg.Rectangle) {
	corners := []vg.Point{box.Min, {X: box.Max.X, Y: box.Min.Y}, box.Max, {X: box.Min.X, Y: box.Max.Y}}
	c.FillPolygon(lookOf(style).color, corners)
	thin := draw.LineStyle{Color: white, Width: 1.2}
	switch style % 5 {
	case 1:
		hatch(c, thin, box, 1)
	case 2:
		hatch(c, thin, box, -1)
	case 3:
		for at := box.Min.Y + 5; at < box.Max.Y; at += 6 {
			c.StrokeLine2(thin, box.Min.X, at, box.Max.X, at)
		}
	case 4:
		hatch(c, thin, box, 1)
		hatch(c, thin, box, -1)
	}
	c.StrokeLines(draw.LineStyle{Color: ink, Width: 0.8}, append(slices.Clone(corners), corners[0]))
}

// hatch draws slanted strokes within a box, rising (1) or falling (-1).
func hatch(c *draw.Canvas, style draw.LineStyle, box vg.Rectangle, slope vg.Length) {
	width, height := box.Max.X-box.Min.X, box.Max.Y-box.Min.Y
	for shift := -height + 4; shift < width; shift += 7 {
		from, to := max(0, -shift), min(height, width-shift)
		if from >= to {
			continue
		}
		low, high := box.Min.Y+from, box.Min.Y+to
		if slope < 0 {
			low, high = box.Max.Y-from, box.Max.Y-to
		}
		c.StrokeLine2(style, box.Min.X+shift+from, low, box.Min.X+shift+to, high)
	}
}

// labelPlotter writes the names of the lines at their right ends, so that no legend is needed.
type labelPlotter struct{ chart *chart }

const (
	labelSize vg.Length = 11
	labelStep vg.Length = 14
	// labelRoom is the space between a line's end and its name, for the connecting stroke and the marker.
	labelRoom vg.Length = 30
	// spare allows for readers whose sans-serif font is wider than the one used to measure names, such as DejaVu Sans.
	spare = 1.2
	// labelLength is the maximum length of a name beside a chart, in characters; tables have the full names.
	labelLength = 30
)

// GlyphBoxes reserves the space of the names to the right of the data.
func (l labelPlotter) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	style := writing(labelSize, ink)
	var widest vg.Length
	for _, name := range l.names() {
		widest = max(widest, style.Width(name)*spare)
	}
	// Without names, there is still the value of a best point at the edge.
	return []plot.GlyphBox{{X: 1, Y: 0.5, Rectangle: vg.Rectangle{Max: vg.Point{X: widest + labelRoom, Y: 1}}}}
}

// names returns the labels of all lines.
func (l labelPlotter) names() []string {
	out := make([]string, 0, len(l.chart.lines))
	for i, one := range l.chart.lines {
		name := shorten(l.chart.label(one), labelLength)
		if l.chart.bars && one.baseline {
			// Each is on its own bar, so one name is enough for all.
			name = ""
			if i == l.chart.measured() {
				name = "baseline"
			}
		}
		out = append(out, name)
	}
	return out
}

// Plot writes the names, each as close to the end of its line as the others allow.
func (l labelPlotter) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	names := l.names()
	type place struct {
		line     int
		from, at vg.Length
	}
	var places []place
	for i, one := range l.chart.lines {
		if names[i] != "" {
			end := y(one.values[len(one.values)-1].y)
			if l.chart.bars {
				end = c.Max.Y - labelStep*vg.Length(i) // in the order of the bars
			}
			places = append(places, place{i, end, end})
		}
	}
	slices.SortStableFunc(places, func(a, b place) int {
		switch {
		case a.from < b.from:
			return -1
		case a.from > b.from:
			return 1
		}
		return 0
	})
	wanted := make([]vg.Length, 0, len(places))
	for _, one := range places {
		wanted = append(wanted, one.from)
	}
	for i, at := range spreadOut(wanted, c.Min.Y+4, c.Max.Y-4) {
		places[i].at = at
	}
	style := writing(labelSize, ink)
	style.YAlign = draw.YCenter
	for _, one := range places {
		which := l.chart.lines[one.line]
		look := lookOf(which.style)
		right := c.Max.X
		if l.chart.bars {
			box := vg.Rectangle{Min: vg.Point{X: right + 10, Y: one.at - 5}, Max: vg.Point{X: right + 22, Y: one.at + 5}}
			if which.baseline {
				c.StrokeLine2(draw.LineStyle{Color: ink, Width: 1.6, Dashes: baselineDashes}, box.Min.X, one.at, box.Max.X, one.at)
			} else {
				fillBar(&c, which.style, box)
			}
		} else {
			end := x(which.values[len(which.values)-1].x)
			lead := draw.LineStyle{Color: gray, Width: 0.5}
			c.StrokeLines(lead, []vg.Point{{X: end + 5, Y: one.from}, {X: max(right+4, end+5), Y: one.from}, {X: right + 14, Y: one.at}})
			marker(&c, look, which.baseline, vg.Point{X: right + 19, Y: one.at}, 3.6)
		}
		c.FillText(style, vg.Point{X: right + labelRoom - 4, Y: one.at}, names[one.line])
	}
}

// spreadOut moves ascending positions apart until they differ by at least one step, or less if the bounds are too narrow. It moves none
// farther than necessary.
func spreadOut(wanted []vg.Length, low, high vg.Length) []vg.Length {
	step := labelStep
	if len(wanted) > 1 {
		step = min(step, (high-low)/vg.Length(len(wanted)-1))
	}
	// Neighbors that touch form a block, which is centered on the desired positions of its members.
	type block struct {
		sum   vg.Length
		count int
	}
	start := func(b block) vg.Length {
		at := b.sum/vg.Length(b.count) - step*vg.Length(b.count-1)/2
		return max(low, min(at, high-step*vg.Length(b.count-1)))
	}
	var blocks []block
	for _, at := range wanted {
		blocks = append(blocks, block{at, 1})
		for n := len(blocks); n > 1 && start(blocks[n-2])+step*vg.Length(blocks[n-2].count) > start(blocks[n-1])+1e-9; n = len(blocks) {
			blocks[n-2].sum += blocks[n-1].sum
			blocks[n-2].count += blocks[n-1].count
			blocks = blocks[:n-1]
		}
	}
	var out []vg.Length
	for _, b := range blocks {
		for i := range b.count {
			out = append(out, start(b)+step*vg.Length(i))
		}
	}
	return out
}
