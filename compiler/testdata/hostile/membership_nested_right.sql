-- IN whose right side is IN
select (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in (event in event)))))))))))))))))))))))))))))) from events
