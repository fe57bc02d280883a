# bars.gp -- lines of label, value, least, most, colour as horizontal bars; see report.py: plot
#
# Variables: data, out, rows, heading, axis; one: draw a line at 1, on a logarithmic axis.
set terminal svg noenhanced size 900, 70 + 24 * rows font "sans-serif,12" background "white"
set output out
set datafile separator "\t"
set title heading
set xlabel axis
set yrange [-0.6 : rows - 0.4]
set grid x
unset key
if (one) set logscale x 2; set xrange [0.0625 : 16]; set arrow from 1, graph 0 to 1, graph 1 nohead lw 2 dt 2
if (!one) set xrange [0 : *]
low = one ? 0.0625 : 0
set style fill solid 0.85
plot data using (low):0:(low):($2 > low ? $2 : low):($0 - 0.35):($0 + 0.35):(int(strcol(5))):ytic(1) \
	with boxxyerror lc rgb variable, \
	data using 2:0:3:4 with xerrorbars pt 0 lw 1.5 lc rgb "black"
