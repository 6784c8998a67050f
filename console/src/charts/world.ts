// The shapes of countries. It is a chunk of its own, loaded with the first map.
import atlas from "world-atlas/countries-110m.json";

/** A country's outline, in the coordinates of the map. */
export interface Shape {
	/** ISO 3166 code of two letters; empty for disputed places without one. */
	code: string;
	name: string;
	path: string;
}

export const width = 960;
export const height = 470;

interface Atlas {
	transform: { scale: [number, number]; translate: [number, number] };
	arcs: [number, number][][];
	objects: { countries: { geometries: Geometry[] } };
}

type Ring = number[];
type Geometry = { id?: string; properties: { name: string } } & (
	{ type: "Polygon"; arcs: Ring[] } | { type: "MultiPolygon"; arcs: Ring[][] }
);

/** All countries but Antarctica. */
export function shapes(): Shape[] {
	const { transform, arcs, objects } = atlas as unknown as Atlas;
	const lines = arcs.map((arc) => decode(arc, transform));
	return objects.countries.geometries
		.filter((g) => g.id !== "010")
		.map((g) => {
			const polygons = g.type === "Polygon" ? [g.arcs] : g.arcs;
			return {
				code: codeOf(g.id, g.properties.name),
				name: g.properties.name,
				path: polygons
					.flat()
					.map((ring) => outline(ring, lines))
					.join(""),
			};
		});
}

/** The number of a country as its code: a browser knows them as the older names of regions. */
function codeOf(id: string | undefined, name: string): string {
	if (!id) return name === "Kosovo" ? "XK" : "";
	return /^und-([A-Z]{2})$/.exec(Intl.getCanonicalLocales(`und-${id}`)[0] ?? "")?.[1] ?? "";
}

/** The points of an arc: each is given by its distance from the one before. */
function decode(arc: [number, number][], { scale, translate }: Atlas["transform"]): [number, number][] {
	let [x, y] = [0, 0];
	return arc.map(([dx, dy]) => {
		x += dx;
		y += dy;
		return [x * scale[0] + translate[0], y * scale[1] + translate[1]];
	});
}

/** The path of a ring. An arc with a negative number is gone through from its end. */
function outline(ring: Ring, lines: [number, number][][]): string {
	const points = ring.flatMap((n, i) => {
		const line = n < 0 ? (lines[~n] ?? []).toReversed() : (lines[n] ?? []);
		return i === 0 ? line : line.slice(1);
	});
	return `M${unbroken(points)
		.map(([longitude, latitude]) => project(longitude, latitude))
		.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`)
		.join("L")}Z`;
}

/** A ring that crosses the 180th meridian goes on beyond it, in place of a line around the globe. */
function unbroken(points: [number, number][]): [number, number][] {
	let shift = 0;
	return points.map(([longitude, latitude], i) => {
		const step = i === 0 ? 0 : longitude - (points[i - 1]?.[0] ?? 0);
		if (Math.abs(step) > 180) shift -= Math.sign(step) * 360;
		return [longitude + shift, latitude];
	});
}

/** A place on the globe in the natural earth projection. */
function project(longitude: number, latitude: number): [number, number] {
	const a = (longitude * Math.PI) / 180;
	const b = (latitude * Math.PI) / 180;
	const b2 = b * b;
	const b4 = b2 * b2;
	const x = a * (0.8707 - 0.131979 * b2 + b4 * (-0.013791 + b4 * (0.003971 * b2 - 0.001529 * b4)));
	const y = b * (1.007226 + b2 * (0.015085 + b4 * (-0.044475 + 0.028874 * b2 - 0.005916 * b4)));
	return [width / 2 + x * 175, 262 - y * 175];
}
