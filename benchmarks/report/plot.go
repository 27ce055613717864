package report

import (
	"bytes"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of a chart in points, and the size of a small one, two of which fit side by side.
const (
	chartWidth  vg.Length = 760
	chartHeight vg.Length = 350
	smallWidth  vg.Length = 500
	smallHeight vg.Length = 300
)

// size returns the size of the chart on a page.
func (c *chart) size() (width, height vg.Length) {
	if c.small() {
		return smallWidth, smallHeight
	}
	return chartWidth, chartHeight
}

// small is true for a chart that is derived from another one, and for one or two bars.
func (c *chart) small() bool {
	values := 0
	for _, l := range c.lines {
		values += len(l.values)
	}
	return c.shows != theValue || c.bars && values <= 2
}

// sans is the font of all text in charts. SVG contains only its name, so that the reader's own sans-serif font of the same widths may
// replace it.
var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

func writing(size vg.Length, color color.Color) text.Style {
	return text.Style{Color: color, Font: font.From(sans, size), Handler: plot.DefaultTextHandler}
}

// draw draws the chart on a canvas, with or without its title.
func (c *chart) draw(on draw.Canvas, titled bool) {
	p := plot.New()
	p.BackgroundColor = white
	if titled {
		p.Title.Text = c.title
		p.Title.TextStyle = writing(14, ink)
		p.Title.TextStyle.XAlign, p.Title.TextStyle.YAlign = draw.XCenter, draw.YTop
		p.Title.Padding = 8
	}
	ticks := niceTicks(c.top() * 1.04)
	p.Y.Min, p.Y.Max = 0, ticks[len(ticks)-1]
	p.Y.Tick.Marker = marks(ticks, tickLabels(ticks))
	p.Y.Label.Text, p.X.Label.Text = c.unit, c.dimension
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		label, mark := writing(11.5, ink), writing(11, ink)
		label.XAlign, label.YAlign = draw.XCenter, draw.YBottom
		mark.XAlign, mark.YAlign = axis.Tick.Label.XAlign, axis.Tick.Label.YAlign
		axis.Label.TextStyle, axis.Tick.Label = label, mark
		axis.LineStyle = draw.LineStyle{Color: gray, Width: 0.75}
		axis.Tick.LineStyle = axis.LineStyle
		axis.Tick.Length = 4
		axis.Label.Padding = 4
	}
	p.Y.Padding, p.X.Padding = 6, 4
	p.Add(gridPlotter{ticks})
	if c.bars {
		c.setNames(p)
		p.Add(barPlotter{c})
	} else {
		c.setNumbers(p)
		p.Add(linePlotter{c})
	}
	p.Add(labelPlotter{c})
	p.Draw(draw.Crop(on, 6, -6, 6, -6))
}

// setNames makes the horizontal axis one of words.
func (c *chart) setNames(p *plot.Plot) {
	p.X.Min, p.X.Max = -0.5, float64(max(len(c.ticks), 1))-0.5
	var at []float64
	var names []string
	for _, t := range c.ticks {
		at, names = append(at, t.at), append(names, shorten(t.text, max(8, 100/len(c.ticks))))
	}
	p.X.Tick.Marker = marks(at, names)
	p.X.Tick.Length = 0
}

// setNumbers makes the horizontal axis one of numbers, with the user's text as labels. If labels would touch, every second one is left out,
// and so on.
func (c *chart) setNumbers(p *plot.Plot) {
	p.X.Min, p.X.Max = c.ticks[0].at, c.ticks[len(c.ticks)-1].at
	if c.log2 {
		p.X.Scale = plot.LogScale{}
	}
	style := writing(11, ink)
	width, _ := c.size()
	room := float64(width) * 0.66
	var at []float64
	var names []string
	end := -1e9
	for _, t := range c.ticks {
		name := t.text
		if !strings.ContainsAny(name, "kmgtKMGT") {
			name = grouped(name)
		}
		half := float64(style.Width(name)) / 2
		middle := room * p.X.Scale.Normalize(p.X.Min, p.X.Max, t.at)
		if middle-half < end+6 {
			name = ""
		} else {
			end = middle + half
		}
		at, names = append(at, t.at), append(names, name)
	}
	p.X.Tick.Marker = marks(at, names)
}

func marks(at []float64, names []string) plot.ConstantTicks {
	var out plot.ConstantTicks
	for i, v := range at {
		// The library draws a tick without a label as a minor one.
		out = append(out, plot.Tick{Value: v, Label: names[i]})
	}
	return out
}

// gridPlotter draws the horizontal grid lines.
type gridPlotter struct{ at []float64 }

// Plot draws the grid lines.
func (g gridPlotter) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	for _, v := range g.at {
		c.StrokeLine2(draw.LineStyle{Color: raster, Width: 0.6}, c.Min.X, y(v), c.Max.X, y(v))
	}
}

// linePlotter draws lines, error bars, markers and the best point.
type linePlotter struct{ chart *chart }

// Plot draws the lines.
func (l linePlotter) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	ordered := slices.Clone(l.chart.lines)
	slices.SortStableFunc(ordered, func(a, b line) int { return rank(a) - rank(b) })
	for _, one := range ordered {
		look := lookOf(one.style)
		points := make([]vg.Point, 0, len(one.values))
		for _, v := range one.values {
			points = append(points, vg.Point{X: x(v.x), Y: y(v.y)})
		}
		style := draw.LineStyle{Color: look.color, Width: 1.8, Dashes: look.dashes}
		if one.baseline {
			style.Width, style.Dashes = 1.3, baselineDashes
		}
		c.StrokeLines(style, points)
		for i, v := range one.values {
			if v.high > v.low {
				whisker(&c, look.color, x(v.x), y(v.low), y(v.high))
			}
			marker(&c, look, one.baseline, points[i], 3.6)
		}
	}
	for _, one := range ordered {
		for _, v := range one.values {
			if v.best {
				l.chart.markBest(&c, vg.Point{X: x(v.x), Y: y(v.y)}, y(v.high), v)
			}
		}
	}
}

// rank sorts baselines below measured lines.
func rank(l line) int {
	if l.baseline {
		return 0
	}
	return 1
}

func whisker(c *draw.Canvas, color color.Color, x, low, high vg.Length) {
	style := draw.LineStyle{Color: color, Width: 1}
	c.StrokeLine2(style, x, low, x, high)
	c.StrokeLine2(style, x-3, low, x+3, low)
	c.StrokeLine2(style, x-3, high, x+3, high)
}

// marker draws the marker of a line; a baseline's marker is hollow.
func marker(c *draw.Canvas, look look, hollow bool, at vg.Point, radius vg.Length) {
	c.SetLineStyle(draw.LineStyle{Color: look.color, Width: 1.4})
	look.marker.DrawGlyph(c, draw.GlyphStyle{Color: look.color, Radius: radius, Shape: look.marker}, at)
	if hollow {
		c.SetLineStyle(draw.LineStyle{Color: white, Width: 0.5})
		look.marker.DrawGlyph(c, draw.GlyphStyle{Color: white, Radius: radius * 0.55, Shape: look.marker}, at)
	}
}

// markBest draws a ring around the best point and its value above it.
func (c *chart) markBest(on *draw.Canvas, at vg.Point, top vg.Length, v value) {
	on.SetLineStyle(draw.LineStyle{Color: ink, Width: 1.2})
	var ring vg.Path
	ring.Move(vg.Point{X: at.X + 7, Y: at.Y})
	ring.Arc(at, 7, 0, 2*3.141592653589793)
	ring.Close()
	on.Stroke(ring)
	style := writing(11, ink)
	style.Font.Weight = bold
	style.XAlign, style.YAlign = draw.XCenter, draw.YBottom
	name := "best " + number(v.y)
	if half := style.Width(name) / 2; at.X+half > on.Max.X {
		style.XAlign, at.X = draw.XRight, min(at.X+10, on.Max.X+10)
	} else if at.X-half < on.Min.X {
		style.XAlign, at.X = draw.XLeft, at.X-8
	}
	place := vg.Point{X: at.X, Y: max(at.Y+7, top) + 3}
	halo(on, style, place, name)
}

// halo writes text on a white background, so that no line crosses it.
func halo(c *draw.Canvas, style text.Style, at vg.Point, text string) {
	box := style.Rectangle(text)
	c.FillPolygon(color.RGBA{0xff, 0xff, 0xff, 0xff}, []vg.Point{
		{X: at.X + box.Min.X - 1, Y: at.Y + box.Min.Y + 1}, {X: at.X + box.Max.X + 1, Y: at.Y + box.Min.Y + 1},
		{X: at.X + box.Max.X + 1, Y: at.Y + box.Max.Y - 1}, {X: at.X + box.Min.X - 1, Y: at.Y + box.Max.Y - 1},
	})
	c.FillText(style, at, text)
}

// shorten truncates a name that is too long.
func shorten(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// svg returns the chart as an HTML element with its description for blind readers.
func (c *chart) svg() (string, error) {
	canvas := vgsvg.New(c.size())
	c.draw(draw.New(canvas), false)
	var raw bytes.Buffer
	if _, err := canvas.WriteTo(&raw); err != nil {
		return "", err
	}
	return svgElement(raw.String(), c.id, c.title, c.describe()), nil
}
