-- lag without ORDER BY resolved its argument twice
select lag(lag(lag(lag(lag(lag(lag(lag(lag(lag(lag(lag(lag(lag(lag(lag(lag(lag(lag(lag(lag(lag(lag(lag(event) over ()) over ()) over ()) over ()) over ()) over ()) over ()) over ()) over ()) over ()) over ()) over ()) over ()) over ()) over ()) over ()) over ()) over ()) over ()) over ()) over ()) over ()) over ()) over () from events
