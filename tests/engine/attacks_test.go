package engine_test

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// attacks go for what is special in ClickHouse: how it names, filters, orders, samples and stores rows.
var attacks = []string{
	// Where a row stands among the rows that were read, be they of whom they may.
	"select count() from events where rowNumberInBlock() < 20",
	"select count() from events prewhere rowNumberInBlock() < 20",
	"select count() from events where rowNumberInAllBlocks() < 20 and event != ''",
	"select max(rowNumberInBlock()), max(rowNumberInAllBlocks()) from events",
	"select max(n) from (select rowNumberInAllBlocks() as n from events where event != '')",
	"select count() from persons where rowNumberInBlock() < 5",
	"select countIf(rowNumberInBlock() < 20) from events where nowInBlock() > '2000-01-01'",
	// Shares and counts of what a table holds.
	"select count() from events sample 1/2",
	"select count() from events sample 20", "select count() from events sample 40/2", "select count() from events sample 1000 offset 1/2",
	"select count() from events sample 1/3 offset 1/3 where event != ''",
	"select count() from (select event from events limit 50 %)",
	// Columns under other names, and arrays of the select list.
	"select count(), arraySort(groupUniqArray(b)) from events as e (a, b)", "select count() from events x (a) full join raw_persons y (a) on x.a = y.a",
	"select count() from events e (a, b) where b::int > 0", "select x, [distinct_id::int] as ids from events array join ids as x order by x limit 3",
	"select count() from events semi join raw_persons on events.person_id = raw_persons.id", "select count() from events anti join raw_groups on events.$group_0 = raw_groups.key",
	"select count() from events where (event, distinct_id) in ('1001', '1001')",
	// What ClickHouse answers from its metadata.
	"select count() from events", "select count() from raw_persons", "select count() from (select 1 from events)", "select count() from (select * from raw_groups)",
	"select min(timestamp), max(timestamp) from events", "select min(team_id), max(team_id) from events", "select min(toYear(timestamp)), max(toYear(timestamp)) from events",
	"select toYear(timestamp), count() from events group by 1 order by 1", "select count(), min(event) from events where toYear(timestamp) = 2024",
	"select uniqExact(team_id) from events", "select distinct team_id from events", "select team_id, count() from events group by team_id",
	"select team_id from events order by team_id desc limit 1", "select team_id from events limit 1 by team_id", "select max(team_id) over () from events limit 1",
	"select team_id from events order by timestamp limit 3 with ties", "select count() from events having max(team_id) > 201",
	// Dictionaries of LowCardinality columns are shared by all rows of a part.
	"select arraySort(groupUniqArray(event)) from events", "select uniq(event), uniqExact(event), uniqHLL12(event) from events", "select event from events group by event order by event",
	"select distinct event from events order by event", "select max(event), min(event) from events", "select topK(100)(event) from events",
	"select arraySort(arrayDistinct(groupArray(event))) from events", "select count() from events where event::int > 0", "select sum(event::int) from events",
	"select count() from events where intDiv(1, length(event) - 9) < 5", "select count() from events where toUUID(event) is null", "select event::int as e, count() from events group by e order by e",
	"select event in (select event from events), count() from events group by 1", "select transform(event, ['1001'], ['x'], 'y') as e, count() from events group by e order by e",
	"select count() from events a join events b on a.event::int = b.event::int", "select sum(length(event)), max(length(lower(event))) from events",
	"select any(length(event)) over (partition by event::int) from events", "select event from events union distinct select event from events order by event",
	// Orders of evaluation: what fails on words must not meet the stranger's rows.
	"select count() from events prewhere distinct_id::int > 0 where event::int > 0", "select count() from events prewhere properties.word::int > 0",
	"select count() from events where properties.digits::int > 0 and distinct_id::int > 0 and event::int > 0 and person.properties.word::int > 0",
	"select distinct_id::int as n from events order by n limit 5", "select distinct_id::int as n from events order by n limit 5 with ties",
	"select properties.word::int as n, uuid from events order by timestamp limit 3", "select * from (select distinct_id::int as n from events) where n > 1000 order by n",
	"select count() from (select distinct_id::int as n, * from events where n > 0) where n > 1", "select max(arrayMap(x -> x::int, elements_chain_texts)) from events",
	"select count() from events array join elements_chain_texts as x where x::int > 0", "select arrayJoin(elements_chain_ids)::int as x, count() from events group by x order by x",
	"select count() from events where arrayExists(x -> x::int > 0, elements_chain_ids)", "select sumIf(distinct_id::int, distinct_id != '') from events",
	"select count() from events where if(event = '', 1, distinct_id::int) > 0", "select count() from events where (event = '' or distinct_id::int > 0)",
	"select count() from events a left join events b on a.uuid = b.uuid and b.distinct_id::int > 0", "select count() from events a full join persons p on a.person_id = p.id where p.properties.word::int > 0",
	"select count() from events a join events b on a.distinct_id = b.distinct_id where a.distinct_id::int > 0 and b.event::int > 0",
	"select count() from events where distinct_id in (select distinct_id from raw_person_distinct_ids where distinct_id::int > 0)",
	"select count() from raw_persons where properties.word::int > 0", "select count() from raw_groups where key::int > 0", "select count() from raw_person_distinct_ids where distinct_id::int > 0",
	"select count() from raw_person_distinct_id_overrides where distinct_id::int > 0", "select count() from persons where properties.word::int > 0",
	"select throwing::int from (select distinct_id as throwing from events where 1 = 1 order by throwing) order by 1 limit 2", "select count() from events having sum(distinct_id::int) > 0",
	"select count() from events where timestamp > '2024-01-01' and distinct_id::int > 0 and timestamp < '2025-01-01'", "select count() from events where 1000 % distinct_id::int >= 0",
	"select max(parseDateTimeBestEffort(properties.at)), sum(properties.n) from events", "select count() from events where intDiv(10, length(properties.word) - 9) is not null",
	"select count() from events array join arrayMap(y -> y::int, elements_chain_texts) as x", "select count() from events left array join arrayMap(y -> y::int, elements_chain_ids) as x where x > 0",
	"select count() from events array join [distinct_id::int] as x where x > 0 and event::int > 0", "select sum(x) from (select arrayJoin([distinct_id::int]) as x from events where x > 0)",
	"select count() from raw_persons array join [properties.word::int] as x where x > 0", "select count() from events array join range(intDiv(20, length(distinct_id) - 10) + 20) as x",
	"select count() from (select distinct_id::int as a, event::int as b from events) where a > 0 and b > 0", "select a, count() from (select intDiv(1, length(distinct_id) - 10) as a from events) where a < 0 group by a",
	"select max(distinct_id::int) over (partition by event::int) as m from events order by m limit 1", "select count() from events group by distinct_id::int order by distinct_id::int limit 2",
	"select count() from (select distinct distinct_id::int from events)", "select event from events order by distinct_id::int limit 1 by event::int limit 3", "select uniq(distinct_id::int) from events where distinct_id::int in (select distinct_id::int from events)",
	"select count() from events a join raw_persons b on a.distinct_id::int = b.properties.word::int", "select count() from events a right join raw_groups b on a.$group_0::int = b.key::int", "select count() from events a cross join raw_groups b where a.$group_0::int = b.key::int",
	"select count() from events a left anti join raw_person_distinct_ids b on a.distinct_id::int = b.distinct_id::int", "select count() from events a any join raw_groups b on a.$group_0::int + 0 = b.key::int where b.key::int > 0",
	// Names.
	"select properties as events, events.team_id from events", "select count() from events as team_id_", "select properties.team_id as t from events where t != '1' group by t",
	"select _part from events", "select _table, _database from events", "select _partition_id from events", "select _sample_factor from events", "select _row_exists, _part_offset from events",
	"select event.size0 from events", "select elements_chain_texts.size0 from events", "select properties.^nested from events", "select properties.`:String` from events", "select person_mode.null from events",
	"select count() from merge('.*')", "select count() from merge('both', 'events')", "select count() from events where event in events", "select count() from events where event in `both.events`",
	"select count() from both.events", "select count() from `both`.`events`", "select count() from `both.events`", "select count() from analytics.events", "select count() from _table_function.numbers",
	"select properties.zvmarkb, properties.shape.zvmarkb from events where properties.zvmarkb is not null", "select * from events e where e.team_id = 202", "select x.* from (select team_id from events) x where x.team_id = 202",
	"select JSONAllPaths(properties) from events", "select JSONExtractKeys(toString(properties)) as k, count() from events group by k", "select distinctJSONPaths(properties) from events", "select distinctDynamicTypes(properties.shape) from events",
	"select toTypeName(properties.shape), count() from events group by 1", "select toTypeName(tuple(*)) from raw_groups limit 1", "select toString(properties) like '%zvm%' as x, count() from events group by x",
	"select count() from (select properties from events union all select properties from persons union all select properties from groups) where toString(properties) like '%zvm%'",
	"select count() from events where toString(person.properties) like '%zvm%' or toString(group_0.properties) like '%zvm%' or toString(pdi.person.properties) like '%zvm%'",
	"select lowCardinalityKeys(event) from events", "select dumpColumnStructure(event) from events", "select blockSize() from events", "select partitionId(1) from events", "select byteSize(event) as b, count() from events group by b",
	"select indexHint(event = '1001'), count() from events group by 1", "select count() from events where indexHint(team_id = 202)", "select count() from events where indexHint(timestamp > '2000-01-01') and indexHint(event != '')",
	"select count() from events where ignore(event) or materialize(1)", "select count() from events group by cube(event, distinct_id) with totals having count() > 50",
	"select count() from events group by grouping sets ((event), (team_id), ()) order by 1", "select sum(count()) over () from events group by event limit 1",
	"select count() from events e left anti join events f on e.event = f.event", "select count() from events e right join events f on e.event = f.event and e.team_id = 202", "select count() from events e full join events f on 1 = 0",
	"select count() from numbers(5) as events", "select events.number from numbers(3) as events join (select 1 as x) as person on 1 = 1", "with events as (select 1 as x) select count() from events",
	// Cohorts: the strangers' have the same numbers, and the tenant's own people in them.
	"select count() from events where person_id in cohort 5", "select count() from events where person_id not in cohort 'sixes'", "select count() from persons where id in cohort 7",
	"select cohort_id, count(), countDistinct(person_id) from cohort_people group by cohort_id order by cohort_id", "select cohort_id, version, sum(sign), count() from raw_cohort_people group by 1, 2 order by 1, 2",
	"select cohort_id, count() from static_cohort_people group by cohort_id order by cohort_id", "select max(version), min(cohort_id), max(team_id) from raw_cohort_people", "select team_id, count() from static_cohort_people group by team_id",
	"select count() from static_cohort_people where team_id = 202 or 1 = 1", "select count() from raw_cohort_people prewhere version = 9 where 1", "select count() from cohort_people c full join static_cohort_people s on c.person_id = s.person_id and s.team_id = 200",
	"select count() from events where person_id in (select person_id from raw_cohort_people where version = 9)", "select count() from events where person_id in (select person_id from static_cohort_people) or person_id in cohort 7",
	"with cohortpeople as (select 1 as person_id), person_static_cohort as (select 2 as person_id) select count() from cohortpeople, person_static_cohort, events where events.person_id in cohort 5",
	"with raw_cohort_people as (select id as person_id, 7 as cohort_id, 1 as sign, 1 as version from persons) select count() from persons where id in cohort 7", "select count() from persons p left join events e on e.person_id = p.id and e.person_id in cohort 5 and p.id not in cohort 6",
	"select person.properties.word from cohort_people where person.properties.word::int > 0 order by 1", "select arrayJoin(if(person_id in cohort 5, ['5', 'x'], [])) as c, count() from events group by c order by c",
	"select count() from (select 1) as events join events as e on 1 = 1", "select count() from numbers(3) as person_distinct_id2, numbers(2) as raw_sessions, numbers(2) as cohortpeople",
}

// TestAttacks asks what an attacker would: every answer must be as if the other project did not exist.
func TestAttacks(t *testing.T) {
	all := newTenants(t)
	c := &tally{refused: map[string]int{}, failed: map[string]int{}}
	for i, text := range attacks {
		for way := range uint64(3) {
			g := &generator{Rand: rand.New(rand.NewPCG(1, 1)), unstable: strings.Contains(text, " any(")}
			all.examine(t, g, text, uint64(i)*3+way, c)
		}
	}
	t.Log(c)
	if answered := c.answered.Load(); answered < int64(len(attacks)) {
		t.Errorf("only %d answers to %d attacks in three ways each", answered, len(attacks))
	}
}
