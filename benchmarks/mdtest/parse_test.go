package mdtest_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/mdtest"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

// good holds outputs of successful runs, with their points.
var good = map[string]struct {
	spec    *v1alpha1.BenchmarkRunSpec
	step    int
	file    string
	version string
	want    []string
}{
	"mdtest 1.9.3: files in the deepest directories of trees of their own, three times": {paper, 0, "1.9.3-paper-i3", "1.9.3", []string{
		"items 1680.000 items",
		"File creation 9018.375 ops/s (3: 6812.661 to 10404.629, 1931.112)",
		"File stat 1058158.451 ops/s (3: 389492.693 to 2133330.624, 940307.547)",
		"File read 441056.955 ops/s (3: 311496.502 to 534651.802, 115843.497)",
		"File removal 464271.141 ops/s (3: 420614.202 to 502118.462, 41061.538)",
		"Tree creation 4091.202 ops/s (3: 3188.455 to 5115.371, 969.180)",
		"Tree removal 3465.331 ops/s (3: 3143.542 to 3950.462, 427.540)",
	}},
	"mdtest 1.9.3: all operations, once": {lowLoad, 0, "1.9.3-low-load", "1.9.3", []string{
		"items 430.000 items",
		"Directory creation 23784.408 ops/s",
		"Directory stat 196320.408 ops/s",
		"Directory removal 7851.285 ops/s",
		"File creation 7586.325 ops/s",
		"File stat 237221.093 ops/s",
		"File read 132723.546 ops/s",
		"File removal 49654.692 ops/s",
		"Tree creation 3979.021 ops/s",
		"Tree removal 5300.003 ops/s",
	}},
	"mdtest 1.9.3: a tree that all share, twice, written and read": {shared, 0, "1.9.3-shared-n", "1.9.3", []string{
		"items 240.000 items",
		"Directory creation 9059.336 ops/s (2: 8755.050 to 9363.621, 430.324)",
		"Directory stat 664660.726 ops/s (2: 664494.140 to 664827.311, 235.588)",
		"Directory removal 8944.039 ops/s (2: 8908.677 to 8979.401, 50.009)",
		"File creation 5238.758 ops/s (2: 5031.314 to 5446.203, 293.370)",
		"File stat 386027.043 ops/s (2: 241176.943 to 530877.142, 204848.975)",
		"File read 199371.269 ops/s (2: 148629.727 to 250112.811, 71759.377)",
		"File removal 120603.060 ops/s (2: 108607.310 to 132598.810, 16964.552)",
		"Tree creation 36093.310 ops/s (2: 34876.320 to 37310.300, 1721.084)",
		"Tree removal 3672.579 ops/s (2: 3174.694 to 4170.464, 704.116)",
	}},
	"mdtest 1.9.3: with a stride": {strided, 0, "1.9.3-stride-all", "1.9.3", []string{
		"items 40.000 items",
		"Directory creation 1244.482 ops/s",
		"Directory stat 286600.701 ops/s",
		"Directory removal 5015.348 ops/s",
		"File creation 1503.246 ops/s",
		"File stat 151318.552 ops/s",
		"File read 170126.617 ops/s",
		"File removal 172164.451 ops/s",
		"Tree creation 1072.505 ops/s",
		"Tree removal 1650.601 ops/s",
	}},
	"mdtest 1.9.3: the step create": {steps, 0, "1.9.3-step1-create", "1.9.3", []string{
		"items 1040.000 items",
		"Directory creation 51786.065 ops/s (2: 33918.250 to 69653.880, 25268.906)",
		"File creation 32155.655 ops/s (2: 3857.259 to 60454.052, 40019.977)",
		"Tree creation 6438.443 ops/s (2: 5757.519 to 7119.367, 962.972)",
	}},
	"mdtest 1.9.3: the step stat": {steps, 1, "1.9.3-step2-stat", "1.9.3", []string{
		"Directory stat 520739.956 ops/s (2: 491270.965 to 550208.947, 41675.447)",
		"File stat 561342.815 ops/s (2: 463148.726 to 659536.904, 138867.412)",
	}},
	"mdtest 1.9.3: the step read": {steps, 2, "1.9.3-step3-read", "1.9.3", []string{
		"File read 624186.924 ops/s (2: 375819.621 to 872554.226, 351244.408)",
	}},
	"mdtest 1.9.3: the step remove": {steps, 3, "1.9.3-step4-remove", "1.9.3", []string{
		"Directory removal 27843.335 ops/s (2: 25929.636 to 29757.034, 2706.379)",
		"File removal 183779.999 ops/s (2: 100203.278 to 267356.721, 118195.334)",
		"Tree removal 4188.632 ops/s (2: 4072.330 to 4304.935, 164.477)",
	}},
	"mdtest 3.3.0: files in the deepest directories of trees of their own, three times": {paper, 0, "3.3.0-paper-i3", "3.3.0", []string{
		"items 1280.000 items",
		"File creation 23476.787 ops/s (3: 20602.296 to 29435.176, 3290.815)",
		"File stat 414955.704 ops/s (3: 160292.072 to 1615696.491, 467356.720)",
		"File read 313226.236 ops/s (3: 166976.312 to 544726.284, 114005.559)",
		"File removal 256185.868 ops/s (3: 137208.163 to 484201.049, 130898.090)",
		"Tree creation 4091.446 ops/s (3: 3107.484 to 4867.505, 898.240)",
		"Tree removal 4375.934 ops/s (3: 3622.833 to 5205.728, 794.229)",
	}},
	"mdtest 3.3.0: all operations, once": {lowLoad, 0, "3.3.0-low-load", "3.3.0", []string{
		"items 430.000 items",
		"Directory creation 44942.811 ops/s",
		"Directory stat 656344.257 ops/s",
		"Directory removal 20076.181 ops/s",
		"File creation 26122.602 ops/s",
		"File stat 531279.667 ops/s",
		"File read 426423.462 ops/s",
		"File removal 165871.844 ops/s",
		"Tree creation 12536.699 ops/s",
		"Tree removal 7878.077 ops/s",
	}},
	"mdtest 3.3.0: a tree that all share, twice, written and read": {shared, 0, "3.3.0-shared-n", "3.3.0", []string{
		"items 240.000 items",
		"Directory creation 4970.298 ops/s (2: 4921.760 to 5025.989, 68.821)",
		"Directory stat 576152.932 ops/s (2: 340141.357 to 713309.160, 214933.879)",
		"Directory removal 16648.973 ops/s (2: 15306.719 to 17976.646, 1864.334)",
		"File creation 4947.996 ops/s (2: 4519.517 to 5376.245, 605.231)",
		"File stat 838558.441 ops/s (2: 747063.108 to 935231.333, 127555.945)",
		"File read 228915.867 ops/s (2: 142997.161 to 314632.372, 121175.311)",
		"File removal 160999.968 ops/s (2: 136506.037 to 185175.612, 34185.988)",
		"Tree creation 3590.338 ops/s (2: 3223.896 to 3956.780, 518.227)",
		"Tree removal 4029.322 ops/s (2: 3814.977 to 4243.667, 303.130)",
	}},
	"mdtest 3.3.0: with a stride": {strided, 0, "3.3.0-stride-all", "3.3.0", []string{
		"items 40.000 items",
		"Directory creation 6387.925 ops/s",
		"Directory stat 412137.247 ops/s",
		"Directory removal 10259.575 ops/s",
		"File creation 1216.144 ops/s",
		"File stat 205228.984 ops/s",
		"File read 139722.700 ops/s",
		"File removal 199447.655 ops/s",
		"Tree creation 774.924 ops/s",
		"Tree removal 4803.789 ops/s",
	}},
	"mdtest 3.3.0: the step create": {steps, 0, "3.3.0-step1-create", "3.3.0", []string{
		"items 720.000 items",
		"Directory creation 34549.031 ops/s (2: 14888.534 to 54401.135, 26735.975)",
		"File creation 65604.348 ops/s (2: 5490.134 to 166074.795, 92837.734)",
		"Tree creation 6803.779 ops/s (2: 1114.009 to 12493.549, 8046.550)",
	}},
	"mdtest 3.3.0: the step stat": {steps, 1, "3.3.0-step2-stat", "3.3.0", []string{
		"Directory stat 605993.708 ops/s (2: 367216.727 to 1166866.817, 424746.768)",
		"File stat 575381.442 ops/s (2: 353730.829 to 1121366.073, 410311.093)",
	}},
	"mdtest 3.3.0: the step read": {steps, 2, "3.3.0-step3-read", "3.3.0", []string{
		"File read 358126.768 ops/s (2: 231929.174 to 507890.646, 169313.264)",
	}},
	"mdtest 3.3.0: the step remove": {steps, 3, "3.3.0-step4-remove", "3.3.0", []string{
		"Directory removal 35768.901 ops/s (2: 34309.442 to 37234.015, 1971.585)",
		"File removal 207539.632 ops/s (2: 104160.820 to 349641.520, 128304.032)",
		"Tree removal 5482.261 ops/s (2: 5232.454 to 5732.069, 353.282)",
	}},
	"mdtest 3.3.0: directories only": {only, 0, "3.3.0-dirs", "3.3.0", []string{
		"items 80.000 items",
		"Directory creation 5974.851 ops/s",
		"Directory stat 691876.654 ops/s",
		"Directory removal 15642.355 ops/s",
		"Tree creation 3715.086 ops/s",
		"Tree removal 8447.837 ops/s",
	}},
	"mdtest 3.3.0: times instead of rates": {timed, 0, "3.3.0-time", "3.3.0", []string{
		"items 20.000 items",
		"Directory creation 0.006 s (2: 0.006 to 0.006, 0.000)",
		"Directory stat 0.000 s",
		"Directory removal 0.002 s (2: 0.002 to 0.002, 0.000)",
		"File creation 0.006 s (2: 0.006 to 0.006, 0.000)",
		"File stat 0.000 s",
		"File read 0.000 s",
		"File removal 0.000 s",
		"Tree creation 0.000 s",
		"Tree removal 0.000 s",
	}},
	"mdtest 3.3.0: rates and times": {both, 0, "3.3.0-rate-and-time", "3.3.0", []string{
		"items 20.000 items",
		"Directory creation 2120.143 ops/s (2: 2115.486 to 2123.536, 4.882)",
		"Directory stat 484594.514 ops/s (2: 414499.181 to 545777.050, 67709.619)",
		"Directory removal 9804.491 ops/s (2: 9244.549 to 10364.418, 787.195)",
		"File creation 2228.624 ops/s (2: 2219.786 to 2237.249, 12.076)",
		"File stat 548707.232 ops/s (2: 505829.687 to 610146.740, 59590.932)",
		"File read 417737.441 ops/s (2: 377152.124 to 443095.465, 34686.307)",
		"File removal 196288.229 ops/s (2: 187443.181 to 201353.093, 7458.445)",
		"Tree creation 1880.289 ops/s (2: 1627.276 to 2133.301, 357.814)",
		"Tree removal 4058.092 ops/s (2: 4000.128 to 4116.056, 81.973)",
		"Directory creation 0.009 s (2: 0.009 to 0.009, 0.000)",
		"Directory stat 0.000 s",
		"Directory removal 0.002 s (2: 0.002 to 0.002, 0.000)",
		"File creation 0.009 s (2: 0.009 to 0.009, 0.000)",
		"File stat 0.000 s",
		"File read 0.000 s",
		"File removal 0.000 s",
		"Tree creation 0.001 s (2: 0.000 to 0.001, 0.000)",
		"Tree removal 0.000 s",
	}},
	"mdtest 3.3.0: until a second is up": {walled, 0, "3.3.0-stonewall", "3.3.0", []string{
		"items 2000000.000 items",
		"File creation 2531.883 ops/s",
		"File stat 649874.597 ops/s",
		"File read 410901.533 ops/s",
		"File removal 190253.092 ops/s",
		"File create (stonewall) 2567.673 ops/s",
		"Tree creation 1908.291 ops/s",
		"Tree removal 505.850 ops/s",
	}},
	"mdtest 3.3.0: two phases in one command": {twoParts, 0, "3.3.0-create-stat", "3.3.0", []string{
		"items 20.000 items",
		"File creation 2156.334 ops/s",
		"File stat 433743.968 ops/s",
		"Tree creation 1948.964 ops/s",
	}},
	"mdtest 3.3.0: one file that all share": {oneFile, 0, "3.3.0-shared-file", "3.3.0", []string{
		"items 1.000 items",
		"File creation 1859.982 ops/s",
		"File stat 672792.227 ops/s",
		"File read 583679.672 ops/s",
		"File removal 221008.236 ops/s",
		"Tree creation 146.610 ops/s",
		"Tree removal 2022.097 ops/s",
	}},
	"mdtest 3.3.0: in random order": {byChance, 0, "3.3.0-random", "3.3.0", []string{
		"items 20.000 items",
		"File creation 1257.357 ops/s",
		"File stat 553811.404 ops/s",
		"File read 495915.185 ops/s",
		"File removal 172678.026 ops/s",
		"Tree creation 985.602 ops/s",
		"Tree removal 4559.839 ops/s",
	}},
	"mdtest 4.0.0: files in the deepest directories of trees of their own, three times": {paper, 0, "4.0.0-paper-i3", "4.0.0", []string{
		"items 1280.000 items",
		"File creation 1486.251 ops/s (3: 1366.680 to 1679.986, 169.309)",
		"File stat 325882.764 ops/s (3: 159997.292 to 435100.828, 146044.121)",
		"File read 227792.511 ops/s (3: 160365.288 to 288283.795, 64240.692)",
		"File removal 115662.245 ops/s (3: 79954.564 to 149147.381, 34649.910)",
		"Tree creation 1623.364 ops/s (3: 489.077 to 2352.449, 995.580)",
		"Tree removal 5046.843 ops/s (3: 4564.223 to 5788.288, 651.787)",
	}},
	"mdtest 4.0.0: all operations, once": {lowLoad, 0, "4.0.0-low-load", "4.0.0", []string{
		"items 430.000 items",
		"Directory creation 2951.975 ops/s",
		"Directory stat 612619.130 ops/s",
		"Directory rename 156368.191 ops/s",
		"Directory removal 1469.944 ops/s",
		"File creation 1472.678 ops/s",
		"File stat 846340.084 ops/s",
		"File read 659433.536 ops/s",
		"File removal 210572.180 ops/s",
		"Tree creation 641.313 ops/s",
		"Tree removal 243.207 ops/s",
	}},
	"mdtest 4.0.0: a tree that all share, twice, written and read": {shared, 0, "4.0.0-shared-n", "4.0.0", []string{
		"items 240.000 items",
		"Directory creation 558.973 ops/s (2: 522.465 to 595.480, 51.630)",
		"Directory stat 469326.304 ops/s (2: 18512.790 to 920139.817, 637546.585)",
		"Directory rename 5669.624 ops/s (2: 4987.850 to 6351.397, 964.173)",
		"Directory removal 525.039 ops/s (2: 456.106 to 593.973, 97.487)",
		"File creation 362.522 ops/s (2: 335.335 to 389.709, 38.449)",
		"File stat 25971.611 ops/s (2: 13296.432 to 38646.791, 17925.411)",
		"File read 121681.328 ops/s (2: 5725.035 to 237637.620, 163986.962)",
		"File removal 79729.533 ops/s (2: 5421.887 to 154037.178, 105086.880)",
		"Tree creation 347.084 ops/s (2: 252.814 to 441.355, 133.319)",
		"Tree removal 342.590 ops/s (2: 205.749 to 479.431, 193.522)",
	}},
	"mdtest 4.0.0: with a stride": {strided, 0, "4.0.0-stride-all", "4.0.0", []string{
		"items 40.000 items",
		"Directory creation 940.712 ops/s",
		"Directory stat 333543.062 ops/s",
		"Directory rename 77385.683 ops/s",
		"Directory removal 1717.323 ops/s",
		"File creation 137.018 ops/s",
		"File stat 370357.969 ops/s",
		"File read 317750.303 ops/s",
		"File removal 138425.875 ops/s",
		"Tree creation 1481.563 ops/s",
		"Tree removal 1118.481 ops/s",
	}},
	"mdtest 4.0.0: the step create": {steps, 0, "4.0.0-step1-create", "4.0.0", []string{
		"items 720.000 items",
		"Directory creation 3620.602 ops/s (2: 1452.919 to 5788.285, 3065.567)",
		"File creation 2331.490 ops/s (2: 459.165 to 4203.815, 2647.867)",
		"Tree creation 538.153 ops/s (2: 236.889 to 839.416, 426.051)",
	}},
	"mdtest 4.0.0: the step stat": {steps, 1, "4.0.0-step2-stat", "4.0.0", []string{
		"Directory stat 390438.776 ops/s (2: 356078.161 to 424799.392, 48593.249)",
		"File stat 362521.063 ops/s (2: 298261.618 to 426780.509, 90876.579)",
	}},
	"mdtest 4.0.0: the step read": {steps, 2, "4.0.0-step3-read", "4.0.0", []string{
		"File read 92114.516 ops/s (2: 69303.474 to 114925.558, 32259.685)",
	}},
	"mdtest 4.0.0: the step remove": {steps, 3, "4.0.0-step4-remove", "4.0.0", []string{
		"Directory removal 1067.163 ops/s (2: 775.961 to 1358.365, 411.822)",
		"File removal 6515.989 ops/s (2: 3692.855 to 9339.123, 3992.514)",
		"Tree removal 1769.635 ops/s (2: 147.720 to 3391.550, 2293.734)",
	}},
	"mdtest 4.0.0: directories only": {only, 0, "4.0.0-dirs", "4.0.0", []string{
		"items 80.000 items",
		"Directory creation 321.414 ops/s",
		"Directory stat 4787.813 ops/s",
		"Directory rename 74898.286 ops/s",
		"Directory removal 356.276 ops/s",
		"Tree creation 697.713 ops/s",
		"Tree removal 197.472 ops/s",
	}},
	"mdtest 4.0.0: times instead of rates": {timed, 0, "4.0.0-time", "4.0.0", []string{
		"items 20.000 items",
		"Directory creation 0.011 s (2: 0.011 to 0.012, 0.000)",
		"Directory stat 0.000 s",
		"Directory removal 0.042 s (2: 0.028 to 0.057, 0.020)",
		"File creation 0.018 s (2: 0.015 to 0.020, 0.003)",
		"File stat 0.004 s (2: 0.004 to 0.004, 0.000)",
		"File read 0.000 s",
		"File removal 0.000 s",
		"Tree creation 0.036 s (2: 0.001 to 0.071, 0.050)",
		"Tree removal 0.002 s (2: 0.000 to 0.004, 0.002)",
	}},
	"mdtest 4.0.0: rates and times": {both, 0, "4.0.0-rate-and-time", "4.0.0", []string{
		"items 20.000 items",
		"Directory creation 1478.493 ops/s (2: 942.286 to 2014.700, 758.311)",
		"Directory stat 260958.618 ops/s (2: 10416.749 to 511500.488, 354319.710)",
		"Directory rename 64979.930 ops/s (2: 9433.882 to 120525.977, 78553.974)",
		"Directory removal 461.563 ops/s (2: 454.928 to 468.198, 9.383)",
		"File creation 1252.622 ops/s (2: 834.239 to 1671.004, 591.682)",
		"File stat 372429.227 ops/s (2: 2503.763 to 742354.690, 523153.608)",
		"File read 446984.568 ops/s (2: 417343.682 to 476625.455, 41918.544)",
		"File removal 217885.922 ops/s (2: 169466.828 to 266305.016, 68474.939)",
		"Tree creation 1620.841 ops/s (2: 1538.065 to 1703.617, 117.062)",
		"Tree removal 350.933 ops/s (2: 259.196 to 442.671, 129.736)",
		"Directory creation 0.016 s (2: 0.010 to 0.021, 0.008)",
		"Directory stat 0.001 s (2: 0.000 to 0.002, 0.001)",
		"Directory rename 0.001 s (2: 0.000 to 0.002, 0.001)",
		"Directory removal 0.043 s (2: 0.043 to 0.044, 0.001)",
		"File creation 0.018 s (2: 0.012 to 0.024, 0.008)",
		"File stat 0.004 s (2: 0.000 to 0.008, 0.006)",
		"File read 0.000 s",
		"File removal 0.000 s",
		"Tree creation 0.001 s (2: 0.001 to 0.001, 0.000)",
		"Tree removal 0.003 s (2: 0.002 to 0.004, 0.001)",
	}},
	"mdtest 4.0.0: until a second is up": {walled, 0, "4.0.0-stonewall", "4.0.0", []string{
		"items 2000000.000 items",
		"File creation 703.680 ops/s",
		"File stat 9455.868 ops/s",
		"File read 128654.247 ops/s",
		"File removal 87594.771 ops/s",
		"Tree creation 1672.370 ops/s",
		"Tree removal 94.697 ops/s",
	}},
	"mdtest 4.0.0: two phases in one command": {twoParts, 0, "4.0.0-create-stat", "4.0.0", []string{
		"items 20.000 items",
		"File creation 1207.150 ops/s",
		"File stat 434642.902 ops/s",
		"Tree creation 1187.515 ops/s",
	}},
	"mdtest 4.0.0: one file that all share": {oneFile, 0, "4.0.0-shared-file", "4.0.0", []string{
		"items 1.000 items",
		"File creation 2011.271 ops/s",
		"File stat 541200.516 ops/s",
		"File read 603496.978 ops/s",
		"File removal 246723.765 ops/s",
		"Tree creation 1260.687 ops/s",
		"Tree removal 259.004 ops/s",
	}},
	"mdtest 4.0.0: in random order": {byChance, 0, "4.0.0-random", "4.0.0", []string{
		"items 20.000 items",
		"File creation 1662.658 ops/s",
		"File stat 590747.042 ops/s",
		"File read 603496.978 ops/s",
		"File removal 267153.121 ops/s",
		"Tree creation 3366.215 ops/s",
		"Tree removal 947.865 ops/s",
	}},
}

// describe formats samples as lines.
func describe(samples []benchmarks.Sample) []string {
	var out []string
	for _, s := range samples {
		line := fmt.Sprintf("%s %.3f %s", s.Name, s.Value, s.Unit)
		if s.Within != nil {
			line += fmt.Sprintf(" (%d: %.3f to %.3f, %.3f)", s.Within.Count, s.Within.Min, s.Within.Max, s.Within.StdDev)
		}
		out = append(out, line)
	}
	return out
}

func TestParseReadsWhatMdtestPrinted(t *testing.T) {
	for name, test := range good {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			report, err := mdtest.Tool{}.Parse(test.spec, point(t, test.spec), test.step, output(t, test.file))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(describe(report.Samples)).To(Equal(test.want))
			g.Expect(report.Version).To(Equal(test.version))
		})
	}
}

func TestParseReadsAnOutputThatWasSavedElsewhere(t *testing.T) {
	for name, test := range good {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			report, err := mdtest.Tool{}.Parse(&v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolMdtest}, benchmarks.Point{}, test.step, output(t, test.file))
			g.Expect(err).NotTo(HaveOccurred())
			for _, line := range describe(report.Samples) {
				g.Expect(test.want).To(ContainElement(line))
			}
		})
	}
}

func TestParseReadsALineOfAnotherProcessWhereverItArrives(t *testing.T) {
	test := good["mdtest 4.0.0: times instead of rates"]
	lines := strings.SplitAfter(string(output(t, test.file)), "\n")
	for at := range len(lines) + 1 {
		t.Run(fmt.Sprintf("before line %d", at+1), func(t *testing.T) {
			g := NewWithT(t)
			printed := strings.Join(slices.Insert(slices.Clone(lines), at, "WARNING: Read bytes is 0, thus, a read test will actually just open/close\n"), "")
			report, err := mdtest.Tool{}.Parse(test.spec, point(t, test.spec), test.step, []byte(printed))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(describe(report.Samples)).To(Equal(test.want))
		})
	}
}

func TestParseRefusesRunsThatEndedBadly(t *testing.T) {
	for name, test := range map[string]struct {
		spec *v1alpha1.BenchmarkRunSpec
		step int
		file string
		says string
	}{
		"1.9 without the items": {run(2, v1alpha1.MdtestSpec{Items: 10, FilesOnly: true, Phases: []v1alpha1.MdtestPhase{"Create", "Stat"}}), 0, "1.9.3-error-missing-items",
			`mpirun says "MPI_ABORT was invoked on rank 0`},
		"1.9 out of inodes": {run(2, v1alpha1.MdtestSpec{Items: 400, FilesOnly: true}), 0, "1.9.3-error-no-inodes", `mpirun says "MPI_ABORT was invoked on rank 1`},
		"1.9 with an option that it does not know, which it runs without": {ten, 0, "1.9.3-error-option",
			`line 1: "/usr/bin/mdtest: invalid option -- 'Q'" stands outside of the report and says that something has not ended well`},
		"3.3 with an option that it does not know": {ten, 0, "3.3.0-error-option", `line 1 says "Error invalid argument: -Q"`},
		"4.0 with an option that it does not know": {ten, 0, "4.0.0-error-option", `line 1 says "Error invalid argument: -Q"`},
		"3.3 without the items":                    {ten, 0, "3.3.0-error-missing-items", `mpirun says "MPI_ABORT was invoked`},
		"4.0 without the items, for which it prints rates and succeeds": {ten, 0, "4.0.0-error-missing-items",
			`found "WARNING: unable to stat file /mnt/scratch/test-dir.0-0/mdtest_tree.0/file.mdtest.1.0" instead of`},
		"3.3 out of inodes":                 {run(2, v1alpha1.MdtestSpec{Items: 400, FilesOnly: true}), 0, "3.3.0-error-no-inodes", `mpirun says "MPI_ABORT was invoked`},
		"4.0 out of inodes":                 {run(2, v1alpha1.MdtestSpec{Items: 400, FilesOnly: true}), 0, "4.0.0-error-no-inodes", `mpirun says "MPI_ABORT was invoked`},
		"3.3 out of inodes for directories": {run(2, v1alpha1.MdtestSpec{Items: 152, DirectoriesOnly: true}), 0, "3.3.0-error-no-inodes-directories", `mpirun says "MPI_ABORT was invoked`},
		"4.0 out of inodes for directories, for which it prints rates and succeeds": {
			run(2, v1alpha1.MdtestSpec{Items: 152, DirectoriesOnly: true}), 0, "4.0.0-error-no-inodes-directories",
			`found "WARNING: unable to create directory /mnt/scratch/test-dir.0-0/mdtest_tree.0/dir.mdtest.`},
		"3.3 out of space": {run(2, v1alpha1.MdtestSpec{Items: 40, FilesOnly: true, WriteBytes: "100000"}), 0, "3.3.0-error-no-space", `mpirun says "MPI_ABORT was invoked`},
		"4.0 out of space": {run(2, v1alpha1.MdtestSpec{Items: 40, FilesOnly: true, WriteBytes: "100000"}), 0, "4.0.0-error-no-space",
			`mpirun says "Primary job  terminated normally, but 1 process returned"`},
		"3.3 killed":                         {many, 0, "3.3.0-error-killed", `the output is cut off after line 9 ("2 tasks, 800000 files"), before the results`},
		"4.0 killed":                         {many, 0, "4.0.0-error-killed", `("2 tasks, 800000 files"), before the results`},
		"3.3 ended":                          {many, 0, "3.3.0-error-terminated", `the output is cut off after line 9 ("2 tasks, 800000 files"), before the results`},
		"4.0 ended":                          {many, 0, "4.0.0-error-terminated", `("2 tasks, 800000 files"), before the results`},
		"3.3 with a process that was killed": {many, 0, "3.3.0-error-rank-killed", `mpirun says "Primary job  terminated normally, but 1 process returned"`},
		"4.0 with a process that was killed": {many, 0, "4.0.0-error-rank-killed", `mpirun says "Primary job  terminated normally, but 1 process returned"`},
		"3.3 on a tree that is there already, for which it prints rates and succeeds": {
			run(2, v1alpha1.MdtestSpec{Items: 10, FilesOnly: true, Phases: []v1alpha1.MdtestPhase{"Create"}}), 0, "3.3.0-error-again-create",
			`found "error could not create directory '/mnt/scratch/test-dir.0-0/mdtest_tree.0/'" instead of`},
		"4.0 on a tree that is there already, for which it prints rates and succeeds": {
			run(2, v1alpha1.MdtestSpec{Items: 10, FilesOnly: true, Phases: []v1alpha1.MdtestPhase{"Create"}}), 0, "4.0.0-error-again-create",
			`found "WARNING: unable to create tree directory '/mnt/scratch/test-dir.0-0/mdtest_tree.0/'" instead of`},
		"3.3 removing what is not there": {
			phased(run(4, v1alpha1.MdtestSpec{Items: 3, Depth: 1, Branch: 2, FilesOnly: true, UniqueDirectories: true})), 3, "3.3.0-error-remove-wrong", `mpirun says "MPI_ABORT was invoked`},
		"4.0 removing what is not there, for which it prints rates and succeeds": {
			phased(run(4, v1alpha1.MdtestSpec{Items: 3, Depth: 1, Branch: 2, FilesOnly: true, UniqueDirectories: true})), 3, "4.0.0-error-remove-wrong",
			`found "WARNING: [RANK 001]: unlink() of file`},
		"3.3 reading more than there is": {ten, 0, "3.3.0-error-read-more", `mpirun says "MPI_ABORT was invoked`},
		"4.0 reading more than there is": {ten, 0, "4.0.0-error-read-more", `FAILED in md_validate_tests, When writing and reading files, read bytes must be smaller than write bytes`},
		"items that don't divide, which it leaves out": {run(2, v1alpha1.MdtestSpec{Items: 34, Depth: 1, Branch: 2, FilesOnly: true}), 0, "3.3.0-error-n-not-divisible",
			"line 9: mdtest counts 198 items, but the point asked for 204"},
		"no items at all": {nil, 0, "3.3.0-error-n-too-few", "line 9: mdtest made no items"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec, p := test.spec, benchmarks.Point{}
			if spec != nil {
				p = point(t, spec)
			}
			report, err := mdtest.Tool{}.Parse(spec, p, test.step, output(t, test.file))
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(report).To(Equal(benchmarks.Report{}))
		})
	}
}

func TestParseRefusesOutputThatIsNotOfThePoint(t *testing.T) {
	const whole = "3.3.0-paper-i3"
	with := func(change func(*v1alpha1.BenchmarkRunSpec)) *v1alpha1.BenchmarkRunSpec {
		spec := paper.DeepCopy()
		change(spec)
		return spec
	}
	for name, test := range map[string]struct {
		spec     *v1alpha1.BenchmarkRunSpec
		old, new string
		says     string
	}{
		"another number of processes": {spec: with(func(s *v1alpha1.BenchmarkRunSpec) { s.Processes = 8 }),
			says: "line 3: mdtest ran with 4 tasks, but the point asked for 8 processes"},
		"another number of items":      {spec: with(func(s *v1alpha1.BenchmarkRunSpec) { s.Mdtest.Items = 10 }), says: "mdtest counts 1280 items, but the point asked for 640"},
		"another number of iterations": {spec: with(func(s *v1alpha1.BenchmarkRunSpec) { s.Mdtest.Iterations = 2 }), says: "the results are of 3 iterations"},
		"directories that are missing": {spec: with(func(s *v1alpha1.BenchmarkRunSpec) { s.Mdtest.FilesOnly = false }),
			says: `the report ends without "Directory creation" in ops/s, which the point asked for`},
		"a phase too many": {spec: with(func(s *v1alpha1.BenchmarkRunSpec) { s.Mdtest.Phases = []v1alpha1.MdtestPhase{"Create"} }),
			says: `the report holds "File stat", which the point did not ask for`},
		"an operation that is missing":  {old: "   File stat", new: "   File stats", says: "instead of an operation of mdtest that comes next in its order"},
		"an operation that was skipped": {old: "   File removal", new: "   File removal             :          0.000          0.000          0.000          0.000\n   File foo", says: "File foo"},
		"an operation of no name":       {old: "   File stat                 : ", new: "", says: "instead of the rate or time of an operation"},
		"an operation twice":            {old: "   File stat", new: "   File creation             :          1.000          1.000          1.000          0.000\n   File stat", says: "comes next"},
		"a number that is none":         {old: "{mean}", new: "nan", says: `"nan" is no number`},
		"infinity":                      {old: "{mean}", new: "inf", says: `"inf" is no number`},
		"a number below 0":              {old: "{mean}", new: "-1.000", says: `"-1.000" is no number`},
		"a number beyond counting":      {old: "{mean}", new: strings.Repeat("9", 400) + ".000", says: "is no number"},
		"numbers that contradict":       {old: "{mean}", new: "1.000", says: `the numbers of "File creation" contradict each other`},
		"an error among the results":    {old: "   File stat", new: "ERROR: I/O error\n   File stat", says: `found "ERROR: I/O error" instead of the rate or time of an operation`},
		"an error of verifying":         {old: "-- finished", new: "ERROR: verifying the data on read (3 errors)! Take the performance values with care!\n-- finished", says: "verifying"},
		"an error after the end":        {old: "--\n\n", new: "--\nSegmentation fault\n", says: "Segmentation fault"},
		"no number of items":            {old: "4 tasks, 1280 files\n", new: "", says: `found "SUMMARY rate: (of 3 iterations)" instead of what mdtest is about to run`},
		"a second banner":               {old: "4 tasks, 1280 files\n", new: "mdtest-3.3.0 was launched with 4 total task(s) on 1 node(s)\n4 tasks, 1280 files\n", says: "mdtest-3.3.0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec, text := paper, output(t, whole)
			if test.spec != nil {
				spec = test.spec
			}
			if test.old == "{mean}" {
				_, line, _ := strings.Cut(string(text), "File creation")
				test.old = strings.Fields(line)[3]
			}
			if test.old != "" {
				g.Expect(string(text)).To(ContainSubstring(test.old))
				at := bytes.LastIndex(text, []byte(test.old))
				text = append(append(bytes.Clone(text[:at]), test.new...), text[at+len(test.old):]...)
			}
			report, err := mdtest.Tool{}.Parse(spec, point(t, spec), 0, text)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(report).To(Equal(benchmarks.Report{}))
		})
	}
}

// published returns an output that others have published.
func published(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "published", name))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(text)
}

func TestTheTimesOfMdtest41AreInSecondsWhateverTheirTitle(t *testing.T) {
	const file = "4.1.0+dev-33-mdtest-easy-stat.txt"
	read := func(before, after string) (benchmarks.Report, error) {
		text := published(t, file)
		NewWithT(t).Expect(text).To(ContainSubstring(before))
		return mdtest.Tool{}.Parse(&v1alpha1.BenchmarkRunSpec{}, benchmarks.Point{}, 0, []byte(strings.Replace(text, before, after, 1)))
	}
	g := NewWithT(t)
	report, err := read("", "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(describe(report.Samples)).To(Equal([]string{"items 128000000.000 items", "File stat 428583.077 ops/s", "File stat 65.437 s"}))
	report, err = read(" '-x' '/mnt/fs/file'", "")
	g.Expect(err).To(MatchError(ContainSubstring("rate times time is 28045191, and there are 128000000 items")), "without a status file, all items are worked on")
	g.Expect(report).To(Equal(benchmarks.Report{}))
	_, err = read("05/31/2025 13:30:58", "05/31/2025 13:29:52")
	g.Expect(err).To(MatchError(ContainSubstring("nothing in the report proves which one it is")), "the run took less than these seconds")
	_, err = read("(in ops/sec)", "(in ms/op)")
	g.Expect(err).To(MatchError(ContainSubstring("instead of a table of rates in ops/sec")))
	_, err = read("65.437         65.437         65.437", "654.37         654.37         654.37")
	g.Expect(err).To(HaveOccurred())
}

func TestParseRefusesNumbersThatContradictEachOther(t *testing.T) {
	for name, c := range map[string]struct{ file, old, new string }{
		"one iteration with a highest time alone": {"4.1.0+dev-33-mdtest-easy-stat.txt", "65.437         65.437         65.437", "90.000          0.000          0.000"},
		"one iteration with another mean":         {"4.1.0+dev-33-mdtest-easy-stat.txt", "428583.077     428583.077     428583.077", "428583.077     428583.077     428563.077"},
		"one iteration with a deviation":          {"1.9.3-01-mdtest_easy_delete.txt", "85336.828          0.000", "85336.828          1.000"},
		"rates called times":                      {"1.9.3-04-mdtest_easy_write.txt", "SUMMARY rate", "SUMMARY time"},
		"a deviation that lacks its first digit":  {"1.9.3-nfs-negative-fs.txt", "2641.407", "641.407"},
		"no deviation of three rates that differ": {"1.9.3-nfs-negative-fs.txt", "2641.407", "0.000"},
		"a time that the rate is not of":          {"3.4.0+dev-30-mdtest-easy-write.txt", "316.655        316.655        316.655", "31.665        31.665        31.665"},
		"a mean that three rates can't have":      {"1.9.3-nfs-negative-fs.txt", "6010.631", "7710.631"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := published(t, c.file)
			g.Expect(text).To(ContainSubstring(c.old))
			report, err := mdtest.Tool{}.Parse(&v1alpha1.BenchmarkRunSpec{}, benchmarks.Point{}, 0, []byte(strings.Replace(text, c.old, c.new, 1)))
			g.Expect(err).To(HaveOccurred())
			g.Expect(report).To(Equal(benchmarks.Report{}))
		})
	}
}

func TestParseAcceptsMessagesOfSshAndMpirun(t *testing.T) {
	g := NewWithT(t)
	text := output(t, "4.0.0-paper-i3")
	want, err := mdtest.Tool{}.Parse(paper, point(t, paper), 0, text)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mdtest.Tool{}.Parse(paper, point(t, paper), 0, bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")))).To(Equal(want))
	noise := "Warning: Permanently added 'run-worker-0.run' (ED25519) to the list of known hosts.\n" +
		"[run-launcher:00012] 3 more processes have sent help message help-mpi-btl-base.txt / btl:no-nics\n"
	got, err := mdtest.Tool{}.Parse(paper, point(t, paper), 0, bytes.ReplaceAll(text, []byte("\n"), []byte("\n"+noise)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Samples).To(Equal(want.Samples))
	g.Expect(got.Remarks.Count).To(Equal(2*bytes.Count(text, []byte("\n"))), "the report says what was skipped")
}

func TestParseRefusesAStepThatThePointHasNot(t *testing.T) {
	_, err := mdtest.Tool{}.Parse(steps, point(t, steps), 4, output(t, "4.0.0-step4-remove"))
	NewWithT(t).Expect(err).To(MatchError("there is no step 4; the point has 4"))
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"1.9.3-low-load", "3.3.0-low-load", "4.0.0-low-load", "4.0.0-error-no-inodes-directories", "3.3.0-error-rank-killed"} {
		f.Add(output(f, file))
	}
	p := point(f, lowLoad)
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, known := range []benchmarks.Point{p, {}} {
			samples := tooltest.Reads(t, mdtest.Tool{}, lowLoad, known, text)
			if samples != nil && (len(samples) < 2 || len(known.Parameters) > 0 && len(samples) < 10) {
				t.Fatalf("%d samples", len(samples))
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	p, text := point(b, lowLoad), output(b, "4.0.0-low-load")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (mdtest.Tool{}).Parse(lowLoad, p, 0, text); err != nil {
			b.Fatal(err)
		}
	}
}
