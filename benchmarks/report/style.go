package report

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// look distinguishes a line from the others by color, marker and dashes, any two of which suffice.
type look struct {
	color  color.RGBA
	marker draw.GlyphDrawer
	dashes []vg.Length
}

// The colors are those of Okabe and Ito ("Color Universal Design", 2008), which are distinguishable with any kind of color vision. Their
// yellow is left out because it is invisible on white.
var colors = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, // blue
	{0xd5, 0x5e, 0x00, 0xff}, // vermilion
	{0x00, 0x9e, 0x73, 0xff}, // bluish green
	{0x00, 0x00, 0x00, 0xff}, // black
	{0xcc, 0x79, 0xa7, 0xff}, // reddish purple
	{0xe6, 0x9f, 0x00, 0xff}, // orange
	{0x56, 0xb4, 0xe9, 0xff}, // sky blue
}

var markers = []draw.GlyphDrawer{disc{}, block{}, wedge{}, diamond{}, wedge{down: true}, strokes{4, 1}, strokes{4, 0}, strokes{6, 0}}

// Measured lines have long dashes. Only baselines have short ones.
var (
	dashes = [][]vg.Length{
		nil, {9, 3}, {9, 2.5, 2, 2.5}, {14, 3}, {9, 2.5, 2, 2.5, 2, 2.5},
	}
	baselineDashes = []vg.Length{2.5, 2.5}
)

// lookOf returns the look of the line with that number. 7 colors, 8 markers and 5 dashes have no common divisor, so there are 280 different
// looks.
func lookOf(style int) look {
	return look{color: colors[style%len(colors)], marker: markers[style%len(markers)], dashes: dashes[style%len(dashes)]}
}

// glyphPath fills an outline, or leaves it hollow for a baseline.
func glyphPath(c *draw.Canvas, sty draw.GlyphStyle, points []vg.Point) {
	var p vg.Path
	p.Move(points[0])
	for _, at := range points[1:] {
		p.Line(at)
	}
	p.Close()
	c.SetColor(sty.Color)
	c.Fill(p)
}

type disc struct{}

// DrawGlyph draws a filled circle.
func (disc) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	draw.CircleGlyph{}.DrawGlyph(c, sty, at)
}

type block struct{}

// DrawGlyph draws a filled square.
func (block) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	r := sty.Radius * 0.9
	glyphPath(c, sty, []vg.Point{
		{X: at.X - r, Y: at.Y - r}, {X: at.X + r, Y: at.Y - r}, {X: at.X + r, Y: at.Y + r}, {X: at.X - r, Y: at.Y + r},
	})
}

type wedge struct{ down bool }

// DrawGlyph draws a filled triangle.
func (w wedge) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	r := sty.Radius * 1.15
	up := r
	if w.down {
		up = -r
	}
	glyphPath(c, sty, []vg.Point{{X: at.X - r, Y: at.Y - up*0.75}, {X: at.X + r, Y: at.Y - up*0.75}, {X: at.X, Y: at.Y + up}})
}

type diamond struct{}

// DrawGlyph draws a filled diamond.
func (diamond) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	r := sty.Radius * 1.25
	glyphPath(c, sty, []vg.Point{{X: at.X - r, Y: at.Y}, {X: at.X, Y: at.Y - r}, {X: at.X + r, Y: at.Y}, {X: at.X, Y: at.Y + r}})
}

// strokes is a marker of spokes around a point, optionally turned by half a step: a cross, a plus or a star.
type strokes struct{ spokes, half int }

// DrawGlyph draws the spokes.
func (g strokes) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	r := float64(sty.Radius * 1.3)
	for i := range g.spokes {
		sin, cos := math.Sincos(2 * math.Pi * (float64(i) + float64(g.half)/2) / float64(g.spokes))
		c.StrokeLine2(draw.LineStyle{Color: sty.Color, Width: 1.7}, at.X, at.Y, at.X+vg.Length(r*cos), at.Y+vg.Length(r*sin))
	}
}

var (
	white  = color.RGBA{0xff, 0xff, 0xff, 0xff}
	ink    = color.RGBA{0x22, 0x22, 0x22, 0xff}
	gray   = color.RGBA{0x59, 0x59, 0x59, 0xff}
	raster = color.RGBA{0xdd, 0xdd, 0xdd, 0xff}
)
