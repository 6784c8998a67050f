/** Bars of a few numbers, oldest first. `label` says in words what it shows. */
export function SparkBars({ values, label, bad }: { values: readonly number[]; label: string; bad?: readonly number[] }) {
	const width = 96;
	const height = 22;
	const most = Math.max(1, ...values);
	const step = width / Math.max(1, values.length);
	const bar = (value: number, i: number, name: string) => {
		const size = value === 0 ? 0 : Math.max(1.5, (value / most) * (height - 2));
		return <rect key={`${name}${i}`} class={name} x={i * step} y={height - 1 - size} width={Math.max(1, step - 1)} height={size} />;
	};
	return (
		<svg class="sparkbars" role="img" aria-label={label} width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
			<title>{label}</title>
			<line x1={0} x2={width} y1={height - 0.5} y2={height - 0.5} />
			{values.map((value, i) => bar(value, i, "all"))}
			{bad?.map((value, i) => bar(value, i, "bad"))}
		</svg>
	);
}
