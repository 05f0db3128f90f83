package pt2

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/op"
)

// besselJRules are the Bessel functions of orders 0 and 1 of both kinds, and Airy's function, by the fractions of the Cephes library that
// torch uses (aten/src/ATen/native/Math.h).
var besselJRules = map[string]rule{
	"special_bessel_j0": formula(func(f fb, x *ir.Value) *ir.Value { return f.besselJ(0, x) }),
	"special_bessel_j1": formula(func(f fb, x *ir.Value) *ir.Value { return f.besselJ(1, x) }),
	"special_bessel_y0": formula(func(f fb, x *ir.Value) *ir.Value { return f.besselY(0, x) }),
	"special_bessel_y1": formula(func(f fb, x *ir.Value) *ir.Value { return f.besselY(1, x) }),
	"special_airy_ai":   formula(fb.airy),
}

// horner is the polynomial of coefficients a, that of the highest degree first.
func (f fb) horner(x *ir.Value, a []float64) *ir.Value {
	y := f.c(x, a[0])
	for _, v := range a[1:] {
		y = f.add(f.mul(y, x), f.c(x, v))
	}
	return y
}

// fraction is one polynomial over another.
func (f fb) fraction(x *ir.Value, num, den []float64) *ir.Value {
	return op.Div.Make(f.b, f.horner(x, num), f.horner(x, den))
}

// besselTables are fractions: of the cosine and the sine in the part far from 0, and of the functions of the first and second kind near it.
type besselTables struct {
	cosNum, cosDen, sinNum, sinDen, nearNum, nearDen, secondNum, secondDen []float64
}

var besselOrders = [2]besselTables{besselOrder0, besselOrder1}

// besselFar is sqrt(2/(pi x)) (p cos(x - phase) - q sin(x - phase)) for x above 5; of the second kind, p sin + q cos.
func (f fb) besselFar(order int, x *ir.Value, second bool) *ir.Value {
	t := besselOrders[order]
	w := op.Div.Make(f.b, f.c(x, 5), x)
	sq := f.mul(w, w)
	p, q := f.fraction(sq, t.cosNum, t.cosDen), f.mul(w, f.fraction(sq, t.sinNum, t.sinDen))
	at := f.sub(x, f.c(x, math.Pi/4+float64(order)*math.Pi/2))
	sin, cos := op.Sin.Make(f.b, at), op.Cos.Make(f.b, at)
	y := f.sub(f.mul(p, cos), f.mul(q, sin))
	if second {
		y = f.add(f.mul(p, sin), f.mul(q, cos))
	}
	return op.Div.Make(f.b, f.scale(y, math.Sqrt(2/math.Pi)), op.Sqrt.Make(f.b, x))
}

// besselJ is J_0 or J_1; J_1 is odd. The roots of the near part are factors, so that they stay exact.
func (f fb) besselJ(order int, x *ir.Value) *ir.Value {
	t := besselOrders[order]
	a := op.Abs.Make(f.b, x)
	sq := f.mul(a, a)
	roots := [2][2]float64{{5.78318596294678452118, 30.4712623436620863991}, {14.6819706421238932572, 49.2184563216946036703}}[order]
	near := f.mul(f.fraction(sq, t.nearNum, t.nearDen), f.mul(f.sub(sq, f.c(x, roots[0])), f.sub(sq, f.c(x, roots[1]))))
	if order == 1 {
		near = f.mul(near, a)
	}
	y := f.where(op.LE, a, 5, near, f.besselFar(order, a, false))
	if order == 1 {
		y = f.where(op.LT, x, 0, f.neg(y), y)
	}
	return y
}

// besselY is Y_0 or Y_1: -inf at 0, NaN below.
func (f fb) besselY(order int, x *ir.Value) *ir.Value {
	t := besselOrders[order]
	sq := f.mul(x, x)
	near := f.fraction(sq, t.secondNum, t.secondDen)
	log := f.mul(op.Log.Make(f.b, x), f.besselJ(order, x))
	if order == 1 {
		near = f.mul(near, x)
		log = f.sub(log, op.Div.Make(f.b, f.c(x, 1), x))
	}
	near = f.add(near, f.scale(log, 2/math.Pi))
	y := f.where(op.LE, x, 5, near, f.besselFar(order, x, true))
	y = f.where(op.EQ, x, 0, f.c(x, math.Inf(-1)), y)
	return f.where(op.LT, x, 0, f.c(x, math.NaN()), y)
}

// airy is Ai(x): a power series between -2.09 and 2.09, oscillating below and decaying above; NaN at the infinities.
func (f fb) airy(x *ir.Value) *ir.Value {
	const bound = 2.09
	a := op.Abs.Make(f.b, x)
	root := op.Sqrt.Make(f.b, a)
	zeta := f.scale(f.mul(a, root), 2.0/3)
	z := op.Div.Make(f.b, f.c(x, 1), zeta)
	sq := f.mul(z, z)
	fourth := op.Sqrt.Make(f.b, root)
	const scale = 0.564189583547756286948 // 1/sqrt(pi)
	at := f.add(zeta, f.c(x, math.Pi/4))
	wave := f.mul(op.Sin.Make(f.b, at), f.add(f.c(x, 1), f.mul(sq, f.fraction(sq, airySinNum, airySinDen))))
	wave = f.sub(wave, f.mul(op.Cos.Make(f.b, at), f.mul(z, f.fraction(sq, airyCosNum, airyCosDen))))
	low := op.Div.Make(f.b, f.scale(wave, scale), fourth)
	high := op.Div.Make(f.b, f.mul(f.fraction(z, airyHighNum, airyHighDen), f.scale(f.exp(f.neg(zeta)), scale/2)), fourth)
	// Ai(0) (1 + x^3/6 + ...) + Ai'(0) (x + x^4/12 + ...), twelve terms of each.
	cube := f.mul(x, f.mul(x, x))
	var even, odd []float64
	e, o := 1.0, 1.0
	for k := 1.0; k <= 12; k++ {
		even, odd = append([]float64{e}, even...), append([]float64{o}, odd...)
		e /= (3*k - 1) * (3 * k)
		o /= (3 * k) * (3*k + 1)
	}
	series := f.sub(f.scale(f.horner(cube, even), 0.355028053887817239260), f.scale(f.mul(x, f.horner(cube, odd)), 0.258819403792806798405))
	y := f.where(op.GE, x, bound, high, f.where(op.LT, x, -bound, low, series))
	y = f.where(op.GT, x, 103.892, f.c(x, 0), y)
	return f.where(op.EQ, a, math.Inf(1), f.c(x, math.NaN()), y)
}

// Coefficients of the fractions, highest degree first.

var besselOrder0 = besselTables{
	cosNum: []float64{
		7.96936729297347051624e-04, 8.28352392107440799803e-02, 1.23953371646414299388e+00, 5.44725003058768775090e+00, 8.74716500199817011941e+00,
		5.30324038235394892183e+00, 9.99999999999999997821e-01,
	},
	cosDen: []float64{
		9.24408810558863637013e-04, 8.56288474354474431428e-02, 1.25352743901058953537e+00, 5.47097740330417105182e+00, 8.76190883237069594232e+00,
		5.30605288235394617618e+00, 1.00000000000000000218e+00,
	},
	sinNum: []float64{
		-1.13663838898469149931e-02, -1.28252718670509318512e+00, -1.95539544257735972385e+01, -9.32060152123768231369e+01, -1.77681167980488050595e+02,
		-1.47077505154951170175e+02, -5.14105326766599330220e+01, -6.05014350600728481186e+00,
	},
	sinDen: []float64{
		6.43178256118178023184e+01, 8.56430025976980587198e+02, 3.88240183605401609683e+03, 7.24046774195652478189e+03, 5.93072701187316984827e+03,
		2.06209331660327847417e+03, 2.42005740240291393179e+02,
	},
	nearNum: []float64{
		-4.79443220978201773821e+09, 1.95617491946556577543e+12, -2.49248344360967716204e+14, 9.70862251047306323952e+15,
	},
	nearDen: []float64{
		4.99563147152651017219e+02, 1.73785401676374683123e+05, 4.84409658339962045305e+07, 1.11855537045356834862e+10, 2.11277520115489217587e+12,
		3.10518229857422583814e+14, 3.18121955943204943306e+16, 1.71086294081043136091e+18,
	},
	secondNum: []float64{
		1.55924367855235737965e+04, -1.46639295903971606143e+07, 5.43526477051876500413e+09, -9.82136065717911466409e+11, 8.75906394395366999549e+13,
		-3.46628303384729719441e+15, 4.42733268572569800351e+16, -1.84950800436986690637e+16,
	},
	secondDen: []float64{
		1.04128353664259848412e+03, 6.26107330137134956842e+05, 2.68919633393814121987e+08, 8.64002487103935000337e+10, 2.02979612750105546709e+13,
		3.17157752842975028269e+15, 2.50596256172653059228e+17,
	},
}

var besselOrder1 = besselTables{
	cosNum: []float64{
		7.62125616208173112003e-04, 7.31397056940917570436e-02, 1.12719608129684925192e+00, 5.11207951146807644818e+00, 8.42404590141772420927e+00,
		5.21451598682361504063e+00, 1.00000000000000000254e+00,
	},
	cosDen: []float64{
		5.71323128072548699714e-04, 6.88455908754495404082e-02, 1.10514232634061696926e+00, 5.07386386128601488557e+00, 8.39985554327604159757e+00,
		5.20982848682361821619e+00, 9.99999999999999997461e-01,
	},
	sinNum: []float64{
		5.10862594750176621635e-02, 4.98213872951233449420e+00, 7.58238284132545283818e+01, 3.66779609360150777800e+02, 7.10856304998926107277e+02,
		5.97489612400613639965e+02, 2.11688757100572135698e+02, 2.52070205858023719784e+01,
	},
	sinDen: []float64{
		7.42373277035675149943e+01, 1.05644886038262816351e+03, 4.98641058337653607651e+03, 9.56231892404756170795e+03, 7.99704160447350683650e+03,
		2.82619278517639096600e+03, 3.36093607810698293419e+02,
	},
	nearNum: []float64{
		-8.99971225705559398224e+08, 4.52228297998194034323e+11, -7.27494245221818276015e+13, 3.68295732863852883286e+15,
	},
	nearDen: []float64{
		6.20836478118054335476e+02, 2.56987256757748830383e+05, 8.35146791431949253037e+07, 2.21511595479792499675e+10, 4.74914122079991414898e+12,
		7.84369607876235854894e+14, 8.95222336184627338078e+16, 5.32278620332680085395e+18,
	},
	secondNum: []float64{
		1.26320474790178026440e+09, -6.47355876379160291031e+11, 1.14509511541823727583e+14, -8.12770255501325109621e+15, 2.02439475713594898196e+17,
		-7.78877196265950026825e+17,
	},
	secondDen: []float64{
		5.94301592346128195359e+02, 2.35564092943068577943e+05, 7.34811944459721705660e+07, 1.87601316108706159478e+10, 3.88231277496238566008e+12,
		6.20557727146953693363e+14, 6.87141087355300489866e+16, 3.97270608116560655612e+18,
	},
}

var airyHighNum = []float64{
	3.46538101525629032477e-01, 1.20075952739645805542e+01, 7.62796053615234516538e+01, 1.68089224934630576269e+02, 1.59756391350164413639e+02,
	7.05360906840444183113e+01, 1.40264691163389668864e+01, 9.99999999999999995305e-01,
}

var airyHighDen = []float64{
	5.67594532638770212846e-01, 1.47562562584847203173e+01, 8.45138970141474626562e+01, 1.77318088145400459522e+02, 1.64234692871529701831e+02,
	7.14778400825575695274e+01, 1.40959135607834029598e+01, 1.00000000000000000470e+00,
}

var airySinNum = []float64{
	-1.31696323418331795333e-01, -6.26456544431912369773e-01, -6.93158036036933542233e-01, -2.79779981545119124951e-01, -4.91900132609500318020e-02,
	-4.06265923594885404393e-03, -1.59276496239262096340e-04, -2.77649108155232920844e-06, -1.67787698489114633780e-08,
}

var airySinDen = []float64{
	1.33560420706553243746e+01, 3.26825032795224613948e+01, 2.67367040941499554804e+01, 9.18707402907259625840e+00, 1.47529146771666414581e+00,
	1.15687173795188044134e-01, 4.40291641615211203805e-03, 7.54720348287414296618e-05, 4.51850092970580378464e-07,
}

var airyCosNum = []float64{
	1.97339932091685679179e-02, 3.91103029615688277255e-01, 1.06579897599595591108e+00, 9.39169229816650230044e-01, 3.51465656105547619242e-01,
	6.33888919628925490927e-02, 5.85804113048388458567e-03, 2.82851600836737019778e-04, 6.98793669997260967291e-06, 8.11789239554389293311e-08,
	3.41551784765923618484e-10,
}

var airyCosDen = []float64{
	9.30892908077441974853e+00, 1.98352928718312140417e+01, 1.55646628932864612953e+01, 5.47686069422975497931e+00, 9.54293611618961883998e-01,
	8.64580826352392193095e-02, 4.12656523824222607191e-03, 1.01259085116509135510e-04, 1.17166733214413521882e-06, 4.91834570062930015649e-09,
}
